"""What TF32 does to the codec: operands of products keep ten bits behind the point, sums stay float32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from inference.checkpoint import Checkpoint
from inference.codec import Codec

LEAST_DB = 50.0  # signal to error, from which on the shipped file prefers speed


def rounded(x: Tensor) -> Tensor:
    """To the nearest number that TF32 has."""
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def of_rounded(product: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda x, weight, *rest, **more: product(rounded(x), rounded(weight), *rest, **more)


def decode(codec: Codec, codes: np.ndarray) -> Tensor:
    with torch.inference_mode():
        return codec.decode(torch.from_numpy(codes.astype(np.int64))[None])[0].double()


def test_an_embedded_voice_is_far_louder_than_the_error(monkeypatch):
    checkpoint = Checkpoint.open(None)
    codec, voice = checkpoint.load_codec("float32"), next(iter(checkpoint.voices().values()))
    codes = voice.reference.codes
    exact = decode(codec, codes)
    for name in ("conv1d", "conv_transpose1d", "linear"):
        monkeypatch.setattr(F, name, of_rounded(getattr(F, name)))
    attention = F.scaled_dot_product_attention
    monkeypatch.setattr(
        F,
        "scaled_dot_product_attention",
        lambda q, k, v, **more: attention(rounded(q), rounded(k), rounded(v), **more),
    )
    error = decode(codec, codes) - exact
    assert error.square().sum() > 0
    decibel = 10 * torch.log10(exact.square().sum() / error.square().sum())
    assert decibel > LEAST_DB
