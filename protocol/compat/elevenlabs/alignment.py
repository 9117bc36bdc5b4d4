"""Which characters a message of audio speaks, and when: an estimate, as the model tells only of whole segments.

Where a segment begins and how long it is are known exactly; within it all characters are taken to last equally long.
Until its length is known it is guessed from the text.  Each character is told once, in order.
"""

from __future__ import annotations

import math
from itertools import pairwise

from protocol.record import SECONDS_PER_CHARACTER

Told = dict[str, list[str] | list[int]]


class Alignment:
    """Of one context: of the received text, and of what the model was given for it.  `rate`: samples a second."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._received, self._spoken = _Track(), _Track()
        self._tracks = (self._received, self._spoken)
        self._elapsed = 0  # samples of the message that is being made
        self._sent = self._guess = 0  # samples of the segment

    def begin(self, text: str, spoken: str) -> None:
        """A segment begins.  What is left of the one before is told at once."""
        self._received.begin(text, self._elapsed)
        self._spoken.begin(f"{spoken} " if spoken else "", self._elapsed)
        self._sent, self._guess = 0, math.ceil(len(text) * SECONDS_PER_CHARACTER * self._rate)

    def advance(self, samples: int, total: int | None) -> None:
        """So many samples more of the segment, which has `total` as far as that is known."""
        self._sent += samples
        whole = max(self._guess, self._sent + samples) if total is None else total
        part = self._sent / whole if self._sent < whole else 1.0
        for track in self._tracks:
            track.advance(part, self._elapsed, self._elapsed + samples)
        self._elapsed += samples

    def take(self) -> tuple[Told | None, Told | None]:
        """A message is sent: (`alignment`, `normalizedAlignment`) of it; times count from its first sample."""
        self._elapsed = 0
        return self._received.take(self._rate), self._spoken.take(self._rate)

    def rest(self) -> tuple[Told | None, Told | None]:
        """As `take`, with all that is left of the segment: no more audio of it follows."""
        for track in self._tracks:
            track.advance(1.0, self._elapsed, self._elapsed)
        return self.take()


class _Track:
    """One text.  Positions are samples from the beginning of the message that is being made."""

    def __init__(self) -> None:
        self._text, self._taken = "", 0
        self._placed: list[tuple[str, int, int]] = []

    def begin(self, text: str, position: int) -> None:
        self.advance(1.0, position, position)
        self._text, self._taken = text, 0

    def advance(self, part: float, start: int, end: int) -> None:
        """Up to that part of the segment is spoken: at least one character more, and the last one only at its end."""
        size = len(self._text)
        until = size if part >= 1.0 else max(self._taken, min(size - 1, max(self._taken + 1, int(size * part))))
        if until > self._taken:
            self._placed.append((self._text[self._taken : until], start, end))
            self._taken = until

    def take(self, rate: int) -> Told | None:
        chars: list[str] = []
        starts: list[int] = []
        durations: list[int] = []
        for text, start, end in self._placed:
            first, last = round(start * 1000 / rate), round(end * 1000 / rate)
            times = [first + (last - first) * index // len(text) for index in range(len(text) + 1)]
            chars += text
            starts += times[:-1]
            durations += [after - before for before, after in pairwise(times)]
        self._placed = []
        return {"chars": chars, "charStartTimesMs": starts, "charDurationsMs": durations} if chars else None
