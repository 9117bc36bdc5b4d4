"""Golden values of the published implementation with synthetic weights, and models filled with those weights."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import torch
from fill import fill
from torch import nn

from inference.codec import Codec
from inference.config import ArkttsConfig
from inference.dual_ar import DualAR

DATA = Path(__file__).parent / "data"


def golden(name: str) -> dict[str, np.ndarray]:
    """Arrays of tests/data/<name>.npz."""
    with np.load(DATA / f"{name}.npz") as file:
        return dict(file)


def tiny_config(which: str, **changes) -> ArkttsConfig:
    """The tiny configuration "a" or "b"."""
    values = json.loads((DATA / "ar_tiny_config.json").read_text())[which]
    return ArkttsConfig(**{**values, **changes})


def filled(model: nn.Module) -> nn.Module:
    """`model` with the synthetic weight of each tensor's name."""
    model.load_state_dict({key: torch.from_numpy(fill(key, value.shape)) for key, value in model.state_dict().items()})
    return model.eval().requires_grad_(False)


@cache
def tiny_model(which: str, **changes) -> DualAR:
    """The tiny dual-AR model with synthetic weights."""
    return filled(DualAR(tiny_config(which, **changes))).freeze()


def codec_state() -> dict[str, torch.Tensor]:
    """The full-size codec's synthetic state dict as codec.pth has it: with weight norm."""
    tensors = json.loads((DATA / "real_shapes.json").read_text())["codec"]["tensors"]
    return {name: torch.from_numpy(fill(name, shape)) for name, shape in tensors}


def real_config() -> ArkttsConfig:
    """The published checkpoint's configuration: all defaults."""
    return ArkttsConfig()


__all__ = ["DATA", "Codec", "codec_state", "filled", "golden", "real_config", "tiny_config", "tiny_model"]
