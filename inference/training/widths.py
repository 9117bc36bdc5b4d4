"""The voice's widths: what its config.json says."""

from __future__ import annotations

from pathlib import Path

from inference.config import ArkttsConfig
from inference.training.codes import BOOKS, COMPONENTS, ENTRIES
from inference.training.tokenizer import write_tokenizer

FULL = {
    "dim": 320, "n_layer": 8, "n_head": 5, "n_local_heads": 1, "head_dim": 64, "intermediate_size": 896,
    "fast_dim": 256, "n_fast_layer": 2, "fast_n_head": 4, "fast_n_local_heads": 4, "fast_head_dim": 64,
    "fast_intermediate_size": 704, "codec_latent_dim": 192, "codec_decoder_dim": 192,
    "codec_pre_n_layer": 2, "codec_pre_n_head": 3, "codec_pre_n_local_heads": 3, "codec_pre_intermediate_size": 384,
    "codec_post_n_layer": 2, "codec_post_n_head": 3, "codec_post_n_local_heads": 3,
    "codec_post_intermediate_size": 384, "codec_encoder_dim": 16, "codec_encoder_n_layer": 1,
    "codec_encoder_n_head": 4, "codec_encoder_intermediate_size": 512,
}  # fmt: skip
# For a test of the whole recipe on a CPU: the codec's latent must hold two unpacked mel columns, so it stays.
TINY = {
    **FULL, "dim": 64, "n_layer": 2, "n_head": 2, "head_dim": 32, "intermediate_size": 96, "fast_dim": 48,
    "n_fast_layer": 1, "fast_n_head": 2, "fast_n_local_heads": 2, "fast_head_dim": 24, "fast_intermediate_size": 64,
    "codec_decoder_dim": 64, "codec_encoder_dim": 4, "codec_encoder_n_head": 2, "codec_encoder_intermediate_size": 32,
}  # fmt: skip


def write_config(directory: Path, tiny: bool = False) -> ArkttsConfig:
    """Write config.json and tokenizer.json of a checkpoint without weights."""
    directory.mkdir(parents=True, exist_ok=True)
    ids = write_tokenizer(directory / "tokenizer.json", ENTRIES)
    config = ArkttsConfig(
        **(TINY if tiny else FULL), **ids, codebook_size=ENTRIES, num_codebooks=BOOKS, max_seq_len=2048,
        codec_codebook_dim=COMPONENTS + 1, codec_semantic_codebook_size=ENTRIES, codec_residual_codebook_size=ENTRIES,
        codec_filename="codec.safetensors",
    )  # fmt: skip
    config.save_pretrained(directory)
    return config
