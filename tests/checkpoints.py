"""Checkpoints for tests: the published layout with small widths and random weights from a seed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from parity import DATA
from safetensors.torch import save_file

from inference.codec import Codec
from inference.config import ArkttsConfig
from inference.dual_ar import DualAR

# The toy tokenizer of the golden values: 256 semantic ids from 397 on.
SMALL = dict(
    vocab_size=653, dim=32, n_layer=2, n_head=2, n_local_heads=1, head_dim=16, intermediate_size=48, max_seq_len=2048,
    codebook_size=256, num_codebooks=10, semantic_begin_id=397, semantic_end_id=652, eos_token_id=394, pad_token_id=392,
    fast_dim=32, n_fast_layer=1, fast_n_head=2, fast_n_local_heads=1, fast_head_dim=16, fast_intermediate_size=48,
    codec_latent_dim=32, codec_codebook_dim=8, codec_semantic_codebook_size=256, codec_residual_codebook_size=256,
    codec_pre_n_layer=1, codec_pre_n_head=2, codec_pre_n_local_heads=2, codec_pre_intermediate_size=48,
    codec_post_n_layer=2, codec_post_n_head=2, codec_post_n_local_heads=1, codec_post_intermediate_size=48,
    codec_encoder_dim=4, codec_encoder_n_layer=1, codec_encoder_n_head=2, codec_encoder_intermediate_size=48,
    codec_decoder_dim=32,
)  # fmt: skip


def small_config(**changes) -> ArkttsConfig:
    """The small widths, with changes."""
    return ArkttsConfig(**{**SMALL, **changes})


def small_codec(seed: int = 0, **changes) -> Codec:
    """A small codec whose context mixes far: layer scales are large, unlike at the start of a training."""
    torch.manual_seed(seed)
    codec = Codec(small_config(**changes)).eval().requires_grad_(False)
    for name, parameter in codec.named_parameters():
        if name.endswith("gamma"):
            parameter.fill_(0.3)
    return codec


def write_checkpoint(directory: Path, seed: int = 0, **changes) -> Path:
    """A whole checkpoint with two named voices."""
    config = small_config(**changes)
    torch.manual_seed(seed)
    save_file({k: v.clone() for k, v in DualAR(config).state_dict().items()}, directory / "model.safetensors")
    save_file(
        {k: v.clone() for k, v in small_codec(seed, **changes).state_dict().items()}, directory / "codec.safetensors"
    )
    (directory / "config.json").write_text(json.dumps({**config.to_dict(), "model_type": "arktts"}))
    (directory / "tokenizer.json").write_bytes((DATA / "tokenizer.json").read_bytes())
    (directory / "voices").mkdir()
    rng = np.random.default_rng(seed)
    for name in ("ada", "bert"):
        codes = rng.integers(0, config.codebook_size, (config.num_codebooks, 12)).tolist()
        voice = dict(name=name, language="en", description="noise", text="the quick brown fox", codes=codes)
        (directory / "voices" / f"{name}.json").write_text(json.dumps(voice))
    return directory
