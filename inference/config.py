"""The checkpoint's `config.json` (`model_type: arktts`), registered with transformers."""

from __future__ import annotations

from transformers import AutoConfig, PretrainedConfig

# Defaults are those of Audio8-TTS-Preview-0.6b; the codec's are those of the published codec code, except the
# post module's KV heads and intermediate size, which are those of the shipped codec.pth.
_DEFAULTS: dict[str, object] = {
    "dim": 896,
    "n_layer": 24,
    "n_head": 14,
    "n_local_heads": 2,
    "head_dim": 64,
    "intermediate_size": 4864,
    "max_seq_len": 2048,
    "rope_base": 1e6,
    "norm_eps": 1e-6,
    "attention_qkv_bias": True,
    "attention_qk_norm": False,
    "attention_o_bias": False,
    "vocab_size": 155776,
    "codebook_size": 4096,
    "num_codebooks": 10,
    "semantic_begin_id": 151678,
    "semantic_end_id": 155773,
    "n_fast_layer": 4,
    "fast_dim": 896,
    "fast_n_head": 14,
    "fast_n_local_heads": 2,
    "fast_head_dim": 64,
    "fast_intermediate_size": 4864,
    "fast_attention_qkv_bias": False,
    "fast_attention_qk_norm": False,
    "fast_attention_o_bias": False,
    "norm_fastlayer_input": True,
    "ras_window_size": 10,
    "ras_temperature": 1.0,
    "ras_top_p": 0.9,
    "codec_filename": "codec.pth",
    "codec_sample_rate": 44100,
    "codec_frame_size": 2048,
    "codec_latent_dim": 1024,
    "codec_codebook_dim": 8,
    "codec_semantic_codebook_size": 4096,
    "codec_residual_codebook_size": 1024,
    "codec_rope_base": 1e4,
    "codec_norm_eps": 1e-5,
    "codec_downsample_factors": [2, 2],
    "codec_pre_n_layer": 8,
    "codec_pre_n_head": 16,
    "codec_pre_n_local_heads": 16,
    "codec_pre_intermediate_size": 3072,
    "codec_post_n_layer": 8,
    "codec_post_n_head": 16,
    "codec_post_n_local_heads": 8,
    "codec_post_intermediate_size": 1216,
    "codec_window_size": 128,
    "codec_encoder_dim": 64,
    "codec_encoder_rates": [2, 4, 8, 8],
    "codec_encoder_n_layer": 4,
    "codec_encoder_n_head": 16,
    "codec_encoder_intermediate_size": 3072,
    "codec_encoder_window_size": 512,
    "codec_decoder_dim": 1536,
    "codec_decoder_rates": [8, 8, 4, 2],
}


class ArkttsConfig(PretrainedConfig):
    """Widths and ids of the dual-autoregressive model and, under `codec_*`, of its codec.

    Raises ValueError where values contradict each other.
    """

    model_type = "arktts"

    def __init__(self, eos_token_id: int = 151645, pad_token_id: int = 151643, **values):
        unset = {name: default for name, default in _DEFAULTS.items() if name not in values}
        super().__init__(eos_token_id=eos_token_id, pad_token_id=pad_token_id, **unset, **values)
        self._check()

    def _check(self) -> None:
        semantic = self.semantic_end_id - self.semantic_begin_id + 1
        if semantic != self.codebook_size:
            raise ValueError(
                f"config: semantic_begin_id..semantic_end_id spans {semantic} ids, "
                f"codebook_size is {self.codebook_size}"
            )
        stride = 1
        for factor in (*self.codec_decoder_rates, *self.codec_downsample_factors):
            stride *= factor
        if stride != self.codec_frame_size:
            raise ValueError(
                f"config: codec_decoder_rates and codec_downsample_factors multiply to {stride} samples a frame, "
                f"codec_frame_size is {self.codec_frame_size}"
            )

    @property
    def frame_rate(self) -> float:
        """Codec frames a second."""
        return self.codec_sample_rate / self.codec_frame_size


AutoConfig.register("arktts", ArkttsConfig)
