"""Causal convolutions that can be run piece by piece: a `History` keeps what each has to remember between pieces.

Shapes: B rows, C channels, T positions.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class History:
    """What the layers of one pass remember, in the order in which they ask: each calls `swap` once a pass.

    A fresh history (all zeros before the first sample) makes a pass over a whole sequence.
    """

    def __init__(self, kept: list[Tensor] | None = None, frames: int = 0):
        """`frames`: that have passed, of the row that has most; the host's count, so that no device is asked."""
        self.kept: list[Tensor] = kept or []
        self.frames = frames
        self._next = 0

    def begin(self, frames: int, most: int) -> None:
        """Start of a pass over so many more frames.  Raises ValueError if there are more than `most` with those."""
        if self.frames + frames > most:
            raise ValueError(f"a codec stream holds at most {most} frames, got {self.frames + frames}")
        self.frames += frames
        self._next = 0

    def recall(self, batch: int, channels: int, length: int, like: Tensor) -> Tensor:
        """What the layer whose turn it is kept, [B, C, length]; zeros at the start."""
        if self._next == len(self.kept):
            self.kept.append(like.new_zeros(batch, channels, length))
        return self.kept[self._next]

    def keep(self, value: Tensor) -> None:
        """Remember a copy of `value`, and hand over to the next layer."""
        self.kept[self._next] = value.clone()
        self._next += 1


class FixedHistory(History):
    """One whose memory stays where it is, as a captured graph needs it.  `kept`: zeros, or what was kept before."""

    def keep(self, value: Tensor) -> None:
        """Overwrite what was kept with `value`, and hand over to the next layer."""
        self.kept[self._next].copy_(value)
        self._next += 1


def stack_histories(histories: list[History]) -> History:
    """Rows of several streams as one history; all must have begun."""
    kept = [torch.cat(rows) for rows in zip(*(h.kept for h in histories), strict=True)]
    return History(kept, max(h.frames for h in histories))


def unstack_history(history: History, histories: list[History], frames: int) -> None:
    """What a pass over `frames` has made of stacked histories, back into each."""
    for row, own in enumerate(histories):
        own.kept = [value[row : row + 1].clone() for value in history.kept]
        own.frames += frames


def _with_past(x: Tensor, length: int, history: History) -> Tensor:
    """x [B, C, T] with the last `length` positions of before in front; keeps its own last ones."""
    if length == 0:
        return x
    x = torch.cat((history.recall(x.shape[0], x.shape[1], length, x), x), dim=-1)
    history.keep(x[..., x.shape[-1] - length :])
    return x


class CausalConv(nn.Module):
    """Convolution padded on the left alone.  Weight norm is folded at load."""

    def __init__(self, inputs: int, outputs: int, kernel: int, *, stride: int = 1, dilation: int = 1, groups: int = 1):
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, stride=stride, dilation=dilation, groups=groups)
        self.past = (kernel - 1) * dilation + 1 - stride

    def forward(self, x: Tensor, history: History) -> Tensor:
        """x [B, C, T] -> [B, outputs, T / stride]; T is a multiple of the stride."""
        return self.conv(_with_past(x, self.past, history))


class CausalTransposedConv(nn.Module):
    """Transposed convolution whose last kernel − stride samples are dropped (they belong to what follows)."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int):
        super().__init__()
        self.conv = nn.ConvTranspose1d(inputs, outputs, kernel, stride=stride)
        self.stride, self.past = stride, kernel // stride - 1

    def forward(self, x: Tensor, history: History) -> Tensor:
        """x [B, C, T] -> [B, outputs, T * stride]."""
        length = x.shape[-1] * self.stride
        y = self.conv(_with_past(x, self.past, history))
        first = self.past * self.stride
        return y[..., first : first + length]


class Snake(nn.Module):
    """x + sin²(αx) / (α + 1e-9), one α a channel."""

    def __init__(self, channels: int):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x: Tensor, _history: History | None = None) -> Tensor:
        scale = (self.alpha + 1e-9).reciprocal()
        if torch.is_grad_enabled():
            return x + torch.sin(self.alpha * x).square() * scale
        wave = (self.alpha * x).sin_()  # the same in place: the codec waits for memory here more than it computes
        return wave.mul_(wave).mul_(scale).add_(x)


class Steps(nn.Sequential):
    """Layers that take (x, history), one after the other."""

    def forward(self, x: Tensor, history: History) -> Tensor:
        for layer in self:
            x = layer(x, history)
        return x


class ResidualUnit(nn.Module):
    """x + conv1(snake(conv7(snake(x)))), the wide one dilated."""

    def __init__(self, channels: int, dilation: int):
        super().__init__()
        self.block = Steps(
            Snake(channels),
            CausalConv(channels, channels, 7, dilation=dilation),
            Snake(channels),
            CausalConv(channels, channels, 1),
        )

    def forward(self, x: Tensor, history: History) -> Tensor:
        return x + self.block(x, history)


class ConvNeXtBlock(nn.Module):
    """Depthwise convolution, LayerNorm, two pointwise layers with exact GELU, scaled residual."""

    def __init__(self, channels: int):
        super().__init__()
        self.dwconv = CausalConv(channels, channels, 7, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.pwconv1 = nn.Linear(channels, 4 * channels)
        self.pwconv2 = nn.Linear(4 * channels, channels)
        self.gamma = nn.Parameter(torch.full((channels,), 1e-6))

    def forward(self, x: Tensor, history: History) -> Tensor:
        y = self.norm(self.dwconv(x, history).transpose(1, 2))
        y = self.gamma * self.pwconv2(F.gelu(self.pwconv1(y)))
        return x + y.transpose(1, 2)
