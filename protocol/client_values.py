"""What a client is given: audio, results, and what the server says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from protocol.messages import Voice

_ENCODED_BYTES_PER_S = 8000  # 64 kbit/s
_DTYPES = {"pcm": "<i2", "f32": "<f4", "mulaw": "u1", "alaw": "u1"}


@dataclass(frozen=True, slots=True)
class Ready:
    """What `session.ready` said of the server; `limits` by the names of the reference."""

    session_id: str
    model: str
    voices: tuple[Voice, ...]
    sample_rate: int
    frame_samples: int
    prebuffer_ms: int
    limits: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """One binary message.  `start`: index of its first sample in the context; `data`: the samples in `format`.

    In an encoded format the data of a context's chunks, joined, is one file.  Only a decoder knows which samples are in
    a chunk: `samples` is None, and `start` is where its segment begins.
    """

    data: bytes
    start: int
    samples: int | None
    format: str
    sample_rate: int

    @property
    def array(self) -> np.ndarray:
        """(samples,) without a copy: int16 for `pcm`, float32 for `f32`, uint8 for `mulaw` and `alaw`.

        Raises TypeError for encoded formats.
        """
        if self.samples is None:
            raise TypeError(
                f"{self.format} audio is encoded and has no array: decode the data of all chunks as one file"
            )
        return np.frombuffer(self.data, _DTYPES[self.format])

    @property
    def seconds(self) -> float:
        """How long it lasts; in an encoded format, about."""
        return len(self.data) / _ENCODED_BYTES_PER_S if self.samples is None else self.samples / self.sample_rate


class Segment(NamedTuple):
    """A part of a context's text, and the index of the first sample that speaks it."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class ContextResult:
    """What `session.done` said: `reason` is done, max_length or idle; `usage` and `metrics` as on the wire."""

    reason: str
    seed: int
    usage: Mapping[str, float]
    metrics: Mapping[str, float | None]
    samples: int


@dataclass(frozen=True, slots=True)
class CancelResult:
    """How far a cancelled context came.  `text_remaining` also has the text that was not sent."""

    text_spoken: str
    text_remaining: str
    samples_sent: int


class Heard(NamedTuple):
    """All text of a context, cut where its listener is."""

    text_spoken: str
    text_remaining: str
