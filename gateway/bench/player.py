"""One player's notes of one utterance, and what they say: first packet, real-time factor, underruns, its buffer.

Underrun is that of protocol/SPEC.md: a player starts at its context's first chunk and plays in real time; it is dry
while it has nothing to play and a segment whose text was released is unfinished; more than 5 ms is an underrun.  A text
is released once the character behind the segment was sent, or the end.  So time to a segment's first packet is in it
where the player had nothing else to play, even if it had waited for the writer; `Released.ANNOUNCED` leaves that out:
only what is missing inside a segment counts.

Times are seconds of one clock of the receiver; nothing here looks at a clock.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum, auto
from typing import NamedTuple

UNDERRUN_S = 0.005


class Released(Enum):
    """From when on a player may expect a segment."""

    TYPED = auto()  # its text, and one character more or the end, was sent
    ANNOUNCED = auto()  # its first audio came


class Chunk(NamedTuple):
    """Audio that came: when, and which samples of the utterance."""

    arrival: float
    start: int
    samples: int


class Player:
    """Takes notes (`typed`, `done`, `heard`, `segments`) and answers for them.  All but the first need audio."""

    def __init__(self, text: str, sample_rate: int) -> None:
        self.text, self.sample_rate = text, sample_rate
        self.chunks: list[Chunk] = []
        self.segments: list[tuple[str, int]] = []  # text and first sample of each
        self.done_at: float | None = None
        self._typed: list[tuple[int, float]] = []  # characters before each piece, and when it was sent

    # Notes ----------------------------------------------------------------------------------------------------------

    def typed(self, now: float, before: int) -> None:
        """A piece of the text is sent, behind `before` characters of it."""
        self._typed.append((before, now))

    def done(self, now: float) -> None:
        """The end of the text is sent."""
        self.done_at = now

    def heard(self, now: float, start: int, samples: int) -> None:
        """Audio came; `start` is the position of its first sample."""
        self.chunks.append(Chunk(now, start, samples))

    # Answers --------------------------------------------------------------------------------------------------------

    @property
    def started_at(self) -> float:
        """When the first text was sent."""
        return self._typed[0][1]

    @property
    def audio_s(self) -> float:
        """Seconds of audio that came."""
        return sum(chunk.samples for chunk in self.chunks) / self.sample_rate

    @property
    def first_packet_s(self) -> float:
        """From the moment in which the first segment's text was released to its first audio.

        A gateway may release text before the next character tells where the segment ends; then from the last piece.
        """
        arrival = self.chunks[0].arrival
        released = self.typed_at(self._segment_ends()[0])
        return arrival - (released if released <= arrival else self._last_typed_before(arrival))

    @property
    def real_time_factor(self) -> float:
        """Seconds from the first text to the last audio, for a second of audio."""
        return (self.chunks[-1].arrival - self.started_at) / self.audio_s

    @property
    def heard_until(self) -> float:
        """When it has played all that came."""
        end = self.chunks[0].arrival
        for chunk in self.chunks:
            end = max(end, chunk.arrival) + chunk.samples / self.sample_rate
        return end

    def dry_s(self, released: Released = Released.TYPED) -> float:
        """Seconds of underruns: without anything to play of a segment whose text was released."""
        dry, played_until, spoken = 0.0, self.chunks[0].arrival, -1
        starts, ends = [start for _, start in self.segments], self._segment_ends()
        for arrival, start, samples in self.chunks:
            since, segment = played_until, bisect_right(starts, start) - 1
            if segment != spoken:
                due = arrival if released is Released.ANNOUNCED else self.typed_at(ends[segment])
                since = max(played_until, due)
            spoken = segment
            if arrival - since > UNDERRUN_S:
                dry += arrival - since
            played_until = max(played_until, arrival) + samples / self.sample_rate
        return dry

    def silence_s(self) -> float:
        """All silence between the first chunk and the last, for whatever cause."""
        return self.heard_until - self.chunks[0].arrival - self.audio_s

    def buffer(self) -> list[tuple[float, float]]:
        """(time, seconds of audio that wait to be played): the corners of the curve, from first chunk to end."""
        corners, played_until = [(self.chunks[0].arrival, 0.0)], self.chunks[0].arrival
        for chunk in self.chunks:
            if played_until < chunk.arrival:
                corners.append((played_until, 0.0))
            left = max(0.0, played_until - chunk.arrival)
            played_until = max(played_until, chunk.arrival) + chunk.samples / self.sample_rate
            corners += [(chunk.arrival, left), (chunk.arrival, played_until - chunk.arrival)]
        return [*corners, (played_until, 0.0)]

    def typed_at(self, position: int) -> float:
        """When the character at `position` was sent; behind the last one: when the end was."""
        if position >= len(self.text):
            assert self.done_at is not None, "a segment reaches the end of the text, which was not sent"
            return self.done_at
        index = bisect_right(self._typed, position, key=lambda piece: piece[0]) - 1
        return self._typed[index][1]

    def _last_typed_before(self, arrival: float) -> float:
        return max(at for _, at in self._typed if at <= arrival)

    def _segment_ends(self) -> list[int]:
        """How many characters of the text are spoken at the end of each segment."""
        ends, position = [], 0
        for text, _ in self.segments:
            position += len(text)
            ends.append(position)
        return ends
