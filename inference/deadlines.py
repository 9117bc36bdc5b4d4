"""How long stage 1 waits for the chunks of each stream: pure, fed with the connector's records and the clock."""

from __future__ import annotations

from dataclasses import dataclass

from inference.records import (
    CodesChunk,
    ProducerStarted,
    Record,
    StreamAborted,
    StreamOpened,
    StreamPaused,
    StreamResumed,
)


@dataclass(slots=True)
class _Wait:
    """One stream's: seconds that its next chunk may take, and when that is over (None while it is paused)."""

    limit_s: float
    until: float | None


class StreamDeadlines:
    """Tells which streams have brought no chunk for too long.

    `first_chunk_wait_s`, `chunk_wait_s`: connector_get_max_wait_first_chunk and connector_get_max_wait, times
    connector_get_sleep_s.  A wait is counted from the moment when the record before was taken from the connector, so
    take all that is there before asking `expired`: then a busy stage 1 blames nobody for its own delay.
    """

    def __init__(self, first_chunk_wait_s: float, chunk_wait_s: float) -> None:
        self._first_s, self._later_s = first_chunk_wait_s, chunk_wait_s
        self._waits: dict[int, _Wait] = {}

    def feed(self, record: Record, now: float) -> None:
        """A record was taken from the connector at `now`.  Those of streams that are not watched change nothing."""
        match record:
            case ProducerStarted():
                self._waits.clear()
            case StreamOpened(stream_id=stream_id):
                self._waits[stream_id] = _Wait(self._first_s, now + self._first_s)
            case CodesChunk(last=True) | StreamAborted():
                self.forget(record.stream_id)
            case CodesChunk(stream_id=stream_id) if wait := self._waits.get(stream_id):
                wait.limit_s = self._later_s
                wait.until = None if wait.until is None else now + self._later_s
            case StreamPaused(stream_id=stream_id) if wait := self._waits.get(stream_id):
                wait.until = None
            case StreamResumed(stream_id=stream_id) if wait := self._waits.get(stream_id):
                wait.until = now + wait.limit_s

    def forget(self, stream_id: int) -> None:
        """The stream has ended, for whatever cause."""
        self._waits.pop(stream_id, None)

    def expired(self, now: float) -> list[int]:
        """The streams whose wait is over, each told once and forgotten."""
        late = [stream_id for stream_id, wait in self._waits.items() if wait.until is not None and wait.until <= now]
        for stream_id in late:
            self.forget(stream_id)
        return late

    @property
    def next_deadline(self) -> float | None:
        """When the next wait is over; None if nothing is waited for."""
        return min((wait.until for wait in self._waits.values() if wait.until is not None), default=None)

    def __len__(self) -> int:
        """Streams that are watched, paused ones included."""
        return len(self._waits)
