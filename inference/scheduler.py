"""Which streams run in the next AR step: pure, with the time as an argument.

Every listener needs only one frame in `frame_s`, so more streams can be resident than a step is wide; each step goes to
those whose listeners would run dry first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar


class Schedulable(Protocol):
    """What the scheduler has to know of a stream."""

    credit: bool  # whether it may run: its connection has room

    def slack(self, now: float) -> float | None:
        """Seconds of audio that its listener still has, frames that wait for their chunk included; None if it has
        heard nothing yet."""


S = TypeVar("S", bound=Schedulable)


class Scheduler(Generic[S]):
    """Streams wait in order of arrival for a KV slot, and the resident ones for their turn in a step."""

    def __init__(self, width: int, residents: int) -> None:
        """`width`: streams in one step, at most; `residents`: streams that may hold a slot."""
        self._width, self._residents = width, residents
        self.waiting: deque[S] = deque()
        self.running: list[S] = []

    def add(self, stream: S) -> None:
        """A new stream, last in the queue."""
        self.waiting.append(stream)

    def remove(self, stream: S) -> None:
        """The stream has ended, wherever it was."""
        (self.running if stream in self.running else self.waiting).remove(stream)

    def admit(self, now: float, prefill_s: float) -> S | None:
        """The stream that gets a slot now, if one may.  One a step, and none while a prefill would make someone dry."""
        if len(self.running) >= self._residents or self._tightest(now) < prefill_s:
            return None
        ready = next((stream for stream in self.waiting if stream.credit), None)
        if ready is not None:
            self.waiting.remove(ready)
            self.running.append(ready)
        return ready

    def batch(self, now: float, guard_s: float) -> list[S]:
        """The streams of the next step.

        First those who would be dry within `guard_s`, then those who have heard nothing yet, in order of arrival, then
        the rest by slack.
        """
        runnable = [stream for stream in self.running if stream.credit]
        silent = [stream for stream in runnable if stream.slack(now) is None]
        speaking = sorted(_by_slack(runnable, now), key=lambda pair: pair[0])
        urgent = [stream for slack, stream in speaking if slack < guard_s]
        rest = [stream for slack, stream in speaking if slack >= guard_s]
        return [*urgent, *silent, *rest][: self._width]

    def idle(self) -> bool:
        """Whether nothing can be done until a message comes."""
        free = len(self.running) < self._residents
        return not any(stream.credit for stream in self.running) and not (free and any(s.credit for s in self.waiting))

    def _tightest(self, now: float) -> float:
        return min((slack for slack, _ in _by_slack(self.running, now)), default=float("inf"))


def _by_slack(streams: Iterable[S], now: float) -> list[tuple[float, S]]:
    return [(slack, stream) for stream in streams if stream.credit and (slack := stream.slack(now)) is not None]
