"""Recordings that become codes, piece by piece, in stage 1: between two pieces it decodes for those who listen.

Shapes: Q codebooks, T frames, F samples a frame.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import torch

from inference.average import MovingAverage
from inference.codec import Codec
from inference.convolution import History
from inference.messages import Encode, Encoded

PIECE_FRAMES = 4  # some 20 ms with the embedded voice on one slow core: nobody notices a delay of that length


@dataclass(slots=True)
class _Recording:
    """One that is being encoded: the state of the encoder behind `codes`, pieces of int64 [Q, n]."""

    request: Encode
    history: History = field(default_factory=History)
    codes: list[np.ndarray] = field(default_factory=list)
    taken: int = 0  # samples


class EncodeQueue:
    """Recordings in order of arrival; the encoder is causal, so that pieces give exactly what one pass would."""

    def __init__(self, codec: Codec) -> None:
        weight = next(codec.parameters())
        self._codec, self._device, self._dtype = codec, weight.device, weight.dtype
        self._waiting: deque[_Recording] = deque()
        self._piece_time = MovingAverage()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def piece_s(self) -> float:
        """How long the next piece takes, as far as one knows; 0 before the first."""
        return self._piece_time.value

    def add(self, request: Encode) -> None:
        """Behind the others."""
        self._waiting.append(_Recording(request))

    def step(self) -> Encoded | None:
        """Encode a piece of the oldest recording -> its codes, if that was the last one."""
        recording = self._waiting[0]
        begin = time.monotonic()
        size = PIECE_FRAMES * self._codec.frame_samples
        piece = recording.request.samples[recording.taken : recording.taken + size]
        recording.codes.append(self._encode(piece, recording.history))
        recording.taken += size
        self._piece_time.add(time.monotonic() - begin)
        if recording.taken < len(recording.request.samples):
            return None
        self._waiting.popleft()
        return Encoded(recording.request.request_id, np.concatenate(recording.codes, axis=1).astype(np.uint16))

    def cancel(self, request_id: int) -> None:
        """Nobody wants its codes any more; without effect if it is not here."""
        self._waiting = deque(each for each in self._waiting if each.request.request_id != request_id)

    def drop(self) -> Encode:
        """Give up the oldest recording."""
        return self._waiting.popleft().request

    @torch.inference_mode()
    def _encode(self, samples: np.ndarray, history: History) -> np.ndarray:
        """float32 [at most PIECE_FRAMES * F] -> int64 [Q, n]."""
        waveform = torch.from_numpy(np.array(samples, dtype=np.float32))[None].to(self._device, self._dtype)
        return self._codec.encode(waveform, history)[0].cpu().numpy()
