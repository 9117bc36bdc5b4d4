"""Which codes are decoded next: pure, with the time as an argument.

Long chunks are decoded in pieces, and between two pieces a more urgent stream may come first; pieces that are alike are
decoded in one call.  Where borders are free, short chunks that wait are joined: a call costs much even for few frames,
so a busy codec must not make as many calls as there are chunks, or it would fall behind ever more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from inference.chunking import ListenerClock
from inference.records import CodesChunk


@dataclass(slots=True, eq=False)
class CodecStream:
    """One segment on its way from codes to samples.  `state`: the decoder's."""

    stream_id: int
    clock: ListenerClock
    state: Any
    chunks: deque[CodesChunk] = field(default_factory=deque)
    samples: list[np.ndarray] = field(default_factory=list)  # what of chunks[0] is decoded
    decoded: int = 0  # frames of chunks[0] that are decoded

    @property
    def backlog(self) -> int:
        """Frames that wait."""
        return sum(chunk.codes.shape[1] for chunk in self.chunks) - self.decoded

    def join(self, chunk: CodesChunk, most: int) -> bool:
        """Make one chunk of the last one and this, if they are of at most `most` frames together -> whether it did so.
        The first chunk of all stays as it is: nobody shall wait longer for it."""
        tail = self.chunks[-1] if self.chunks else None
        if tail is None or tail.first_frame == 0 or tail.codes.shape[1] + chunk.codes.shape[1] > most:
            return False
        codes = np.concatenate((tail.codes, chunk.codes), axis=1)
        self.chunks[-1] = CodesChunk(self.stream_id, tail.first_frame, codes, chunk.last)
        return True


class DecodeQueue:
    """The streams of stage 1, in order of arrival."""

    def __init__(
        self,
        frame_s: float,
        longest: int,
        most_streams: int,
        most_frames: int,
        joins: bool,
        alike: Callable[[Any], Hashable] = lambda state: None,
    ) -> None:
        """`longest`: frames of a piece; `most_streams`, `most_frames`: of one call; `joins`: chunks may be joined;
        `alike`: states for which this is the same can be decoded together."""
        self._frame_s, self._longest, self._joins, self._alike = frame_s, longest, joins, alike
        self._most_streams, self._most_frames = most_streams, most_frames
        self._streams: dict[int, CodecStream] = {}

    def __len__(self) -> int:
        return len(self._streams)

    def __iter__(self) -> Iterator[CodecStream]:
        return iter(self._streams.values())

    def get(self, stream_id: int) -> CodecStream | None:
        """The stream, unless it has ended."""
        return self._streams.get(stream_id)

    def open(self, stream_id: int, dry_at: float | None, state: Any) -> None:
        """A stream begins; `dry_at` as in StreamOpened."""
        self._streams[stream_id] = CodecStream(stream_id, ListenerClock(self._frame_s, dry_at), state)

    def put(self, chunk: CodesChunk) -> None:
        """Codes have come for a stream that is open."""
        stream = self._streams[chunk.stream_id]
        if not (self._joins and stream.join(chunk, self._longest)):
            stream.chunks.append(chunk)

    def close(self, stream_id: int) -> None:
        """The stream has ended, for whatever cause."""
        del self._streams[stream_id]

    def ready(self) -> bool:
        """Whether there is something to decode."""
        return any(stream.chunks for stream in self)

    @property
    def backlog(self) -> int:
        """Frames that wait."""
        return sum(stream.backlog for stream in self)

    def spare_s(self, now: float, seconds_per_frame: float) -> float:
        """For how long other work may keep the device, so that nobody runs dry or waits for first audio for its sake.

        Who is dry and has nothing here waits for stage 0, not for us.
        """
        if any(stream.chunks and stream.clock.dry_at is None for stream in self):
            return 0.0
        clocks = ((stream.clock.dry_at, stream.chunks) for stream in self)
        dry_at = min((at for at, chunks in clocks if at is not None and (chunks or at > now)), default=inf)
        return dry_at - now - self.backlog * seconds_per_frame

    def batch(self, now: float, seconds_per_frame: float) -> list[CodecStream]:
        """The most urgent stream and those that can be decoded in the same call.

        First those who would be dry if another piece were decoded before theirs, then those who have heard nothing
        yet, in order of arrival, then who is dry first.
        """

        def rank(stream: CodecStream) -> tuple[int, float]:
            if stream.clock.dry_at is None:
                return (1, 0.0)
            needs = (stream.chunks[0].codes.shape[1] - stream.decoded + self._longest) * seconds_per_frame
            return (0 if stream.clock.dry_at - now < needs else 2, stream.clock.dry_at)

        ordered = sorted((stream for stream in self if stream.chunks), key=rank)
        if not ordered:
            return []
        wanted = self._kind(ordered[0])
        frames = max(1, wanted[0])
        most = max(1, min(self._most_streams, self._most_frames // frames))
        return [stream for stream in ordered if self._kind(stream) == wanted][:most]

    def next_codes(self, batch: list[CodecStream]) -> np.ndarray:
        """The batch's pieces, [B, Q, n]."""
        return np.stack([self._piece(stream) for stream in batch])

    def advance(self, stream: CodecStream, frames: int, now: float) -> CodesChunk | None:
        """So many frames were decoded -> the chunk that is complete now, if one is."""
        stream.decoded += frames
        if stream.decoded < stream.chunks[0].codes.shape[1]:
            return None
        chunk, stream.decoded = stream.chunks.popleft(), 0
        stream.clock.sent(chunk.codes.shape[1], now)
        return chunk

    def _piece(self, stream: CodecStream) -> np.ndarray:
        return stream.chunks[0].codes[:, stream.decoded : stream.decoded + self._longest]

    def _kind(self, stream: CodecStream) -> tuple[int, Hashable]:
        return self._piece(stream).shape[1], self._alike(stream.state)
