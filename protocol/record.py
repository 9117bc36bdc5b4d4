"""What was said when: the segments of a context with their positions, and what of them a listener has heard."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from protocol.codes import LocalProtocolError

# Until a segment's length is known it is guessed from its text: about 14 characters a second.
SECONDS_PER_CHARACTER = 0.07

# Scripts that are written without spaces: each character may begin a word.
_WORD_START = re.compile(r"(?<!\S)\S|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


@dataclass(slots=True)
class SegmentRecord:
    """`start`: its first sample; `sent`: samples handed over so far; `total`: samples it will have, None: not known."""

    text: str
    start: int
    sent: int = 0
    total: int | None = None

    def heard(self, samples: int, rate: int) -> int:
        """How many characters of the text were heard in `samples` of the segment; less than all end at a word start."""
        if samples < 0:
            return 0
        total = self.total if self.total is not None else max(self.sent, _guess(self.text, rate))
        if samples >= total:
            return len(self.text)
        position = math.floor(len(self.text) * samples / total)
        starts = [match.start() for match in _WORD_START.finditer(self.text) if match.start() <= position]
        return starts[-1] if starts else 0


class SpokenRecord:
    """The segments of one context.  Text that no segment has announced yet is `pending`."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.segments: list[SegmentRecord] = []
        self.samples = 0
        self._pending: list[str] = []

    @property
    def pending(self) -> str:
        """Received text that is in no segment."""
        self._pending = ["".join(self._pending)]
        return self._pending[0]

    def receive(self, text: str) -> None:
        """Append received text."""
        self._pending.append(text)

    def begin(self, text: str) -> SegmentRecord:
        """The next segment; `text` must be what `pending` begins with.  Raises LocalProtocolError."""
        pending = self.pending
        if not pending.startswith(text):
            raise LocalProtocolError("a segment's text must be the received text, verbatim and in order")
        self.close()
        self._pending = [pending[len(text) :]]
        self.segments.append(SegmentRecord(text, self.samples))
        return self.segments[-1]

    def add(self, samples: int, total: int | None) -> None:
        """`samples` more of the last segment are sent, which will have `total` as far as that is known."""
        self.segments[-1].sent += samples
        self.samples += samples
        self.expect(total)

    def expect(self, total: int | None) -> None:
        """The last segment will have so many samples; None: that is not known."""
        self.segments[-1].total = total

    def close(self) -> None:
        """The last segment has all its samples."""
        if self.segments:
            self.segments[-1].total = self.segments[-1].sent

    def split(self, offset_ms: float | None) -> tuple[str, str]:
        """(heard, the rest) of all received text, for a listener who has heard `offset_ms`; None: all that was sent."""
        heard = self.samples if offset_ms is None else min(self.samples, math.floor(offset_ms * self.rate / 1000))
        spoken, rest = [], []
        for segment in self.segments:
            cut = 0 if rest else segment.heard(heard - segment.start, self.rate)
            spoken.append(segment.text[:cut])
            if cut < len(segment.text):
                rest.append(segment.text[cut:])
        return "".join(spoken), "".join(rest) + self.pending


def _guess(text: str, rate: int) -> int:
    return math.ceil(len(text) * SECONDS_PER_CHARACTER * rate)
