"""Which codes are decoded next: pure, with the time as an argument.

Long chunks are decoded in pieces, and between two pieces a more urgent stream may come first; pieces that are alike are
decoded in one call.  A call costs much even for few frames, so a busy codec must not make as many calls as there are
chunks, or it would fall behind ever more.  Where borders are free, chunks that wait are therefore joined, and a piece
is as long as the others can wait for it; it leaves as soon as it is decoded.
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

_LONGEST_CALL_S = 0.05  # a listener who is new may have to wait for a call that has begun


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

    def join(self, chunk: CodesChunk) -> bool:
        """Make one chunk of the last one and this -> whether it did so.  The first chunk of all stays as it is: nobody
        shall wait longer for it."""
        tail = self.chunks[-1] if self.chunks else None
        if tail is None or tail.first_frame == 0:
            return False
        codes = np.concatenate((tail.codes, chunk.codes), axis=1)
        self.chunks[-1] = CodesChunk(self.stream_id, tail.first_frame, codes, chunk.last)
        return True

    def cut(self, frames: int) -> CodesChunk:
        """So many frames of the chunk whose turn it is, as a chunk of their own; the rest stays."""
        whole = self.chunks[0]
        rest = CodesChunk(self.stream_id, whole.first_frame + frames, whole.codes[:, frames:], whole.last)
        self.chunks[0] = rest
        return CodesChunk(self.stream_id, whole.first_frame, whole.codes[:, :frames], False)


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """What is decoded at once: a piece of each of these streams, `codes` [B, Q, n]."""

    streams: list[CodecStream]
    codes: np.ndarray

    @property
    def frames(self) -> int:
        """Of all streams together."""
        return len(self.codes) * self.codes.shape[2]


class DecodeQueue:
    """The streams of stage 1, in order of arrival."""

    def __init__(
        self,
        frame_s: float,
        piece: int,
        most_streams: int,
        most_frames: int,
        joined: int = 0,
        alike: Callable[[Any], Hashable] = lambda state: None,
    ) -> None:
        """`piece`: frames of a piece; `most_streams`, `most_frames`: of one call.  `joined`: chunks may be joined, into
        pieces of up to so many frames; 0: they stay what they are.  `alike`: states for which this is the same can be
        decoded together."""
        self._frame_s, self._piece, self._joined, self._alike = frame_s, piece, joined, alike
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
        if not (self._joined and stream.join(chunk)):
            stream.chunks.append(chunk)

    def ready(self) -> bool:
        """Whether there is something to decode."""
        return any(stream.chunks for stream in self)

    @property
    def backlog(self) -> int:
        """Frames that wait."""
        return sum(stream.backlog for stream in self)

    @property
    def ahead(self) -> int:
        """Frames that are decoded before those of one more stream, even if that is in a hurry: a piece of each."""
        return sum(self._next(stream, self._piece) for stream in self)

    def spare_s(self, now: float, seconds_per_frame: float) -> float:
        """For how long other work may keep the device, so that nobody runs dry or waits for first audio for its sake.

        Before a listener comes a piece of each who is dry earlier, and its own.  Who is dry and has nothing here waits
        for stage 0, not for us.
        """
        if any(stream.chunks and stream.clock.dry_at is None for stream in self):
            return 0.0
        clocks = [(stream.clock.dry_at, self._next(stream, self._piece)) for stream in self if stream.chunks]
        clocks += [(at, 0) for stream in self if not stream.chunks and (at := stream.clock.dry_at or now) > now]
        spare, frames = inf, 0
        for dry_at, piece in sorted(clocks):
            frames += piece
            spare = min(spare, dry_at - now - frames * seconds_per_frame)
        return spare

    def next_call(self, now: float, seconds_per_frame: float) -> Call | None:
        """The most urgent stream's next piece, and those of others that can be decoded in the same call."""
        ordered = self._by_urgency(now, seconds_per_frame)
        if not ordered:
            return None
        first, *others = ordered
        longest = self._longest(others, now, seconds_per_frame)
        frames, kind = self._next(first, longest), self._alike(first.state)
        alike = [each for each in others if self._next(each, longest) == frames and self._alike(each.state) == kind]
        most = max(1, min(self._most_streams, self._most_frames // max(1, frames)))
        streams = [first, *alike][:most]
        pieces = [stream.chunks[0].codes[:, stream.decoded : stream.decoded + frames] for stream in streams]
        return Call(streams, np.stack(pieces))

    def advance(self, stream: CodecStream, frames: int, now: float) -> CodesChunk | None:
        """So many frames were decoded -> the chunk that is complete now, if one is."""
        chunk = stream.chunks[0]
        stream.decoded += frames
        if stream.decoded == chunk.codes.shape[1]:
            stream.chunks.popleft()
            stream.decoded = 0
        elif self._joined and chunk.first_frame:
            chunk = stream.cut(stream.decoded)
            stream.decoded = 0
        else:
            return None
        stream.clock.sent(chunk.codes.shape[1], now)
        return chunk

    def close(self, stream_id: int) -> None:
        """The stream has ended, for whatever cause."""
        del self._streams[stream_id]

    def _by_urgency(self, now: float, seconds_per_frame: float) -> list[CodecStream]:
        """First those who would be dry if another piece were decoded before theirs, then those who have heard nothing
        yet, in order of arrival, then who is dry first."""

        def rank(stream: CodecStream) -> tuple[int, float]:
            dry_at = stream.clock.dry_at
            if dry_at is None:
                return (1, 0.0)
            needs = (self._next(stream, self._piece) + self._piece) * seconds_per_frame
            return (0 if dry_at - now < needs else 2, dry_at)

        return sorted((stream for stream in self if stream.chunks), key=rank)

    def _longest(self, others: list[CodecStream], now: float, seconds_per_frame: float) -> int:
        """Frames of a piece, at most: where borders are free, as many as nobody else, the most urgent ones first, runs
        dry for."""
        if not self._joined or any(other.clock.dry_at is None for other in others):
            return self._piece
        spare, frames = _LONGEST_CALL_S, 0
        for other in others:
            frames += self._next(other, self._piece)
            spare = min(spare, other.clock.dry_at - now - frames * seconds_per_frame)
        fit = spare / seconds_per_frame if seconds_per_frame else inf
        return int(max(self._piece, min(fit, self._joined)))

    def _next(self, stream: CodecStream, longest: int) -> int:
        """Frames of a stream's next piece."""
        return min(longest, stream.chunks[0].codes.shape[1] - stream.decoded) if stream.chunks else 0
