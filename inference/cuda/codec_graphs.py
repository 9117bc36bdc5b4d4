"""The stateful decode as captured graphs: a few lengths and batches, of which every piece is put together.

Shapes: B streams, Q codebooks, n frames, F samples a frame, W numbers that a stream keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from inference.codec import Codec
from inference.codec_transformer import MOST_POSITIONS
from inference.convolution import FixedHistory, History
from inference.cuda.graphs import Graph, new_pool

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 25)  # frames; each other number up to 50 is the sum of at most three of them
_MOST_STREAMS = 8  # of one graph: more in a call gain nothing, a chunk of 25 frames of so many fills the device


@dataclass(slots=True, eq=False)
class StreamMemory:
    """What a stream keeps between its pieces.  `kept` [W], None before its first; `frames` that have passed."""

    kept: Tensor | None = None
    frames: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Graph:
    """`samples` float32 [B, n * F], which `replay` makes of the codes and the memory in the decoder's buffers."""

    replay: Callable[[], None]
    samples: Tensor


class GraphDecoder:
    """As `StatefulDecoder`, from graphs, which all work on the same buffers: the codes, the positions and the memory of
    as many streams as the largest graph has."""

    pieces = True

    def __init__(self, codec: Codec, books: int, most_streams: int, lengths: Sequence[int] = LENGTHS):
        """Captures graphs for up to `most_streams` streams.  Not on a CUDA device nothing is captured: the same work is
        done operation by operation."""
        self._codec, self._books = codec, books
        self._device = next(codec.parameters()).device
        self._lengths = sorted({1, *lengths}, reverse=True)
        self._batches = _powers(min(most_streams, _MOST_STREAMS))
        self._lay_out(self._batches[-1])
        self._graphs: dict[tuple[int, int], _Graph] = {}
        pool = new_pool() if self._device.type == "cuda" else None
        for streams in reversed(self._batches):  # the largest first: the smaller ones find their memory in the pool
            for frames in self._lengths:
                self._graphs[streams, frames] = self._capture(streams, frames, pool)

    def open(self) -> StreamMemory:
        """The memory of a stream that begins."""
        return StreamMemory()

    def alike(self, _state: StreamMemory) -> None:
        """All streams decode in one call: those that begin start from zeros."""

    @torch.inference_mode()
    def decode(self, states: list[StreamMemory], codes: np.ndarray) -> np.ndarray:
        """codes uint16 [B, Q, n] -> samples float32 [B, n * F]; the states move on.  Raises ValueError, before anything
        moves, for a stream that would hold more than 16,384 frames."""
        most = max(state.frames for state in states) + codes.shape[2]
        if most > MOST_POSITIONS:
            raise ValueError(f"a codec stream holds at most {MOST_POSITIONS} frames, got {most}")
        samples = torch.empty(
            (len(states), codes.shape[2] * self._codec.frame_samples), pin_memory=self._device.type == "cuda"
        )
        for first in range(0, len(states), self._batches[-1]):
            rows = slice(first, first + self._batches[-1])
            self._decode_some(states[rows], codes[rows], samples[rows])
        if self._device.type == "cuda":
            torch.cuda.current_stream().synchronize()
        return samples.numpy()

    def _decode_some(self, states: list[StreamMemory], codes: np.ndarray, samples: Tensor) -> None:
        """As many streams as one graph holds; nothing waits for the device."""
        streams = next(batch for batch in self._batches if batch >= len(states))
        self._positions[: len(states)].copy_(self._host([state.frames for state in states])[:, None, None], True)
        for row, state in enumerate(states):
            if state.kept is None:
                self._memory[row].zero_()
            else:
                self._memory[row].copy_(state.kept)
        start = 0
        for frames in self._split(codes.shape[2]):
            graph, end = self._graphs[streams, frames], start + frames
            piece = self._host(codes[:, :, start:end])
            self._codes[: piece.numel()].copy_(piece.flatten(), non_blocking=True)
            graph.replay()
            span = slice(start * self._codec.frame_samples, end * self._codec.frame_samples)
            for row in range(len(states)):
                samples[row, span].copy_(graph.samples[row], non_blocking=True)
            start = end
        for row, state in enumerate(states):
            if state.kept is None:
                state.kept = torch.empty_like(self._memory[row])
            state.kept.copy_(self._memory[row])
            state.frames += codes.shape[2]

    def _split(self, frames: int) -> list[int]:
        """Lengths of graphs whose sum is `frames`."""
        lengths = []
        while frames:
            lengths.append(next(length for length in self._lengths if length <= frames))
            frames -= lengths[-1]
        return lengths

    def _host(self, values: np.ndarray | list[int]) -> Tensor:
        """int64, in memory from which the device reads by itself."""
        tensor = torch.from_numpy(np.ascontiguousarray(values, dtype=np.int64))
        return tensor.pin_memory() if self._device.type == "cuda" else tensor

    @torch.inference_mode()
    def _lay_out(self, streams: int) -> None:
        """The buffers, and what of them belongs to which layer: as a first pass asks for it."""
        history = History()
        codes = torch.zeros((1, self._books, 1), dtype=torch.int64, device=self._device)
        self._codec.decode(codes, history)
        self._shapes = [None if each.dtype == torch.int64 else each.shape[1:] for each in history.kept]
        width = sum(shape.numel() for shape in self._shapes if shape is not None)
        dtype = next(self._codec.parameters()).dtype
        self._memory = torch.zeros((streams, width), dtype=dtype, device=self._device)
        self._positions = torch.zeros((streams, 1, 1), dtype=torch.int64, device=self._device)
        self._codes = torch.zeros(streams * self._books * self._lengths[0], dtype=torch.int64, device=self._device)

    def _views(self, streams: int) -> list[Tensor]:
        """The parts of the first `streams` rows, as the layers ask for them."""
        views, first = [], 0
        for shape in self._shapes:
            if shape is None:
                views.append(self._positions[:streams])
            else:
                part = self._memory[:streams, first : first + shape.numel()]
                views.append(part.view(streams, *shape))
                first += shape.numel()
        return views

    @torch.inference_mode()
    def _capture(self, streams: int, frames: int, pool: tuple[int, int] | None) -> _Graph:
        samples = torch.zeros((streams, frames * self._codec.frame_samples), device=self._device)
        codes = self._codes[: streams * self._books * frames].view(streams, self._books, frames)
        work = partial(self._work, codes, self._views(streams), samples)
        return _Graph(Graph(work, pool).launch if self._device.type == "cuda" else work, samples)

    def _work(self, codes: Tensor, memory: list[Tensor], samples: Tensor) -> None:
        samples.copy_(self._codec.decode(codes, FixedHistory(memory)))


def _powers(most: int) -> list[int]:
    """1, 2, 4 … the first that is not below `most`."""
    powers = [1]
    while powers[-1] < most:
        powers.append(2 * powers[-1])
    return powers
