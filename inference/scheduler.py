"""Which streams run in the next AR step, and which listeners are taken on: pure, with the time as an argument.

Every listener needs only one frame in `frame_s`, so more streams can be resident than a step is wide; each step goes to
those whose listeners would run dry first.  That works as long as the rates of all listeners fit what the machine can
do, so a listener gets a *share* before its first stream runs, and keeps it to its end: who speaks never waits for a
newcomer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

GRACE_S = 1.0  # a listener without text keeps its share for so long after it has run dry: the next words may be typed


class Guard(NamedTuple):
    """How much slack makes a listener safe: the tightest one needs `first_s`, the next `each_s` more, and so on, as
    they are served one after the other."""

    first_s: float
    each_s: float = 0.0


class Schedulable(Protocol):
    """What the scheduler has to know of a stream."""

    listener: int  # whose it is
    credit: bool  # whether it may run: its connection has room

    def slack(self, now: float) -> float | None:
        """Seconds of audio that its listener still has, frames that wait for their chunk included; None if it has
        heard nothing yet."""


S = TypeVar("S", bound=Schedulable)


class Scheduler(Generic[S]):
    """Streams wait in order of arrival for a share and a KV slot, and the resident ones for their turn in a step."""

    def __init__(self, width: int, residents: int) -> None:
        """`width`: streams in one step, at most; `residents`: streams that may hold a slot."""
        self._width, self._residents = width, residents
        self.waiting: deque[S] = deque()
        self.running: list[S] = []
        self._heard: set[int] = set()  # listeners who had a share and need more speech, though they may have lost it
        self._shares: dict[int, float] = {}  # listener -> when it has heard what its streams brought that have ended

    def add(self, stream: S, now: float) -> None:
        """A new stream, last in the queue."""
        self._expire(now)
        self.waiting.append(stream)

    def remove(self, stream: S, now: float) -> None:
        """The stream has ended, wherever it was."""
        (self.running if stream in self.running else self.waiting).remove(stream)
        if stream.listener in self._shares:
            self._shares[stream.listener] = max(self._shares[stream.listener], now + (stream.slack(now) or 0.0))

    def release(self, listener: int) -> None:
        """The listener needs no more speech."""
        self._shares.pop(listener, None)
        self._heard.discard(listener)

    def dry_at(self, listener: int, now: float) -> float | None:
        """When a listener with a share has heard all that its ended streams brought; None if it has."""
        dry_at = self._shares.get(listener, now)
        return dry_at if dry_at > now else None

    def listeners(self, now: float) -> int:
        """How many have a share."""
        self._expire(now)
        return len(self._shares)

    def admit(self, now: float, capacity: float, guard: Callable[[S], Guard]) -> S | None:
        """The stream that gets a slot now, if one may: one a step.

        `capacity`: listeners who may have a share; one always may.  `guard`: what listeners must have left for this
        stream's prefill not to make them dry.
        """
        stream = self._next(now, capacity) if len(self.running) < self._residents else None
        if stream is None or self._is_in_the_way(stream, guard(stream), now):
            return None
        self.waiting.remove(stream)
        self.running.append(stream)
        self._shares.setdefault(stream.listener, now)
        self._heard.add(stream.listener)
        return stream

    def batch(self, now: float, guard: Guard) -> list[S]:
        """The streams of the next step.

        First those who would be dry within the guard, then those who have heard nothing yet, in order of arrival, then
        the rest by slack.
        """
        speaking = self._speaking(now)
        unsafe = _unsafe([slack for slack, _ in speaking], guard)
        silent = [stream for stream in self.running if stream.credit and stream.slack(now) is None]
        by_slack = [stream for _, stream in speaking]
        return [*by_slack[:unsafe], *silent, *by_slack[unsafe:]][: self._width]

    def idle(self, now: float, capacity: float) -> bool:
        """Whether nothing can be done until a message comes or, with streams waiting, some time has passed."""
        full = len(self.running) >= self._residents
        return not any(stream.credit for stream in self.running) and (full or self._next(now, capacity) is None)

    def _next(self, now: float, capacity: float) -> S | None:
        """Who has a share comes first, the least slack before the others; then who had one, as its listener waits in
        the middle of a speech; then newcomers.  The latter two in order of arrival."""
        ready = [stream for stream in self.waiting if stream.credit]
        held = [stream for stream in ready if stream.listener in self._shares]
        if held:
            return min(held, key=lambda stream: stream.slack(now) or 0.0)
        if not ready or not self._has_room(now, capacity):
            return None
        return next((stream for stream in ready if stream.listener in self._heard), ready[0])

    def _has_room(self, now: float, capacity: float) -> bool:
        """Whether one more listener fits.

        Those who have heard nothing yet are no more than a step serves at once.  That also keeps a burst from being
        taken on by averages of an idle machine: the next ones come when these have been measured.
        """
        silent = sum(stream.credit and stream.slack(now) is None for stream in self.running)
        return silent < self._width and self.listeners(now) + 1 <= max(1.0, min(capacity, self._residents))

    def _is_in_the_way(self, stream: S, guard: Guard, now: float) -> bool:
        """Whether someone would run dry during the stream's prefill who is to be served before it."""
        own = stream.slack(now)
        others = [slack for slack, _ in self._speaking(now) if own is None or slack < own]
        return _unsafe(others, guard) > 0

    def _speaking(self, now: float) -> list[tuple[float, S]]:
        """Who may run and has been heard, the least slack first."""
        slacks = [(stream.slack(now), stream) for stream in self.running if stream.credit]
        return sorted((pair for pair in slacks if pair[0] is not None), key=lambda pair: pair[0])

    def _expire(self, now: float) -> None:
        """A listener without a stream who has been dry for a while waits for text: its share is free."""
        busy = {stream.listener for stream in (*self.running, *self.waiting)}
        self._shares = {
            listener: dry_at for listener, dry_at in self._shares.items() if listener in busy or dry_at + GRACE_S > now
        }


def _unsafe(slacks: list[float], guard: Guard) -> int:
    """How many of these, the least first, are to be served before anything else."""
    late = [place for place, slack in enumerate(slacks) if slack < guard.first_s + place * guard.each_s]
    return late[-1] + 1 if late else 0
