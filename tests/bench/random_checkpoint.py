"""Writes a checkpoint of the published size and layout with random weights: enough to measure, not to listen to.

    python tests/bench/random_checkpoint.py DIR [--seed 0]

1.2 GB of bfloat16 for the language model, the codec in float32.  Tokenizer and voice are the embedded ones, whose ids
the published vocabulary holds too.  Without `ignore_eos` in the deploy file an utterance ends by chance.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[2]))

from inference.checkpoint import EMBEDDED
from inference.codec import Codec
from inference.config import ArkttsConfig
from inference.dual_ar import DualAR

_SPREAD = 0.02  # of matrices: logits stay within a few units


def write(directory: Path, seed: int) -> None:
    """The whole checkpoint."""
    config, source = ArkttsConfig(), torch.Generator(_device()).manual_seed(seed)
    directory.mkdir(parents=True, exist_ok=True)
    with torch.device("meta"):
        shapes = DualAR(config).to(torch.bfloat16).state_dict()
    save_file({name: _language(name, like, source) for name, like in shapes.items()}, directory / "model.safetensors")
    with torch.device("meta"):
        shapes = Codec(config).state_dict()
    torch.save({name: _codec(name, like, source) for name, like in shapes.items()}, directory / config.codec_filename)
    (directory / "config.json").write_text(json.dumps({**config.to_dict(), "model_type": "arktts"}))
    shutil.copy(EMBEDDED / "tokenizer.json", directory)
    shutil.copytree(EMBEDDED / "voices", directory / "voices", dirs_exist_ok=True)


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _language(name: str, like: Tensor, source: torch.Generator) -> Tensor:
    if like.ndim == 1:
        return torch.full(like.shape, float("norm" in name), dtype=like.dtype)
    values = torch.empty(like.shape, device=source.device).normal_(0, _SPREAD, generator=source)
    return values.to(like.dtype).cpu()


def _codec(name: str, like: Tensor, source: torch.Generator) -> Tensor:
    """Signals keep their strength from layer to layer."""
    if name.endswith(("alpha", "norm.weight")):
        return torch.ones(like.shape)
    if name.endswith("gamma"):
        return torch.full(like.shape, 0.1)
    if like.ndim == 1:
        return torch.zeros(like.shape)
    inputs = like[0].numel()
    if "codebook" in name:
        inputs = 1
    values = torch.empty(like.shape, device=source.device).normal_(0, (3 * inputs) ** -0.5, generator=source)
    return values.cpu()


def main() -> None:
    """Write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    write(options.directory, options.seed)


if __name__ == "__main__":
    main()
