"""Moving averages of what was measured."""

from __future__ import annotations

_FADE = 0.8  # what a measurement counts for when the next one comes: a change is followed within some ten of them
_LONG_FADE = 0.995  # within some hundreds
_UNTRIED = 1.25  # what has not been measured on a busy machine yet is taken to be so much slower there: caches and
# memory are shared with the other stage and the gateway


class MovingAverage:
    """Seconds for each unit of work: two sums that fade, so that much work counts for more than little."""

    def __init__(self, value: float = 0.0, units: float = 0.0, fade: float = _FADE) -> None:
        """It starts with `value`, as if measured once over `units` units of work."""
        self._seconds, self._units, self._fade = value * units, units, fade

    @property
    def value(self) -> float:
        """0 as long as nothing was measured."""
        return self._seconds / self._units if self._units else 0.0

    def add(self, seconds: float, units: float = 1.0) -> None:
        """`units` of work have taken so many seconds."""
        self._seconds = self._fade * self._seconds + seconds
        self._units = self._fade * self._units + units


class WorkTime:
    """Seconds for each unit of work, `now` and when there is much to do.

    How many listeners fit must not be judged by what work takes while few are there, nor by a few lucky moments.
    """

    def __init__(self) -> None:
        self._now, self._busy, self._long = MovingAverage(), MovingAverage(), MovingAverage(fade=_LONG_FADE)

    @property
    def now(self) -> float:
        """Of late; 0 as long as nothing was measured."""
        return self._now.value

    @property
    def busy(self) -> float:
        """When there was much to do: of late or over a longer time, whichever is more."""
        return max(self._busy.value, self._long.value) or _UNTRIED * self._now.value

    def add(self, seconds: float, units: float, busy: bool) -> None:
        """`units` of work have taken so many seconds.  `busy`: as much was done at once as when there is much to do."""
        self._now.add(seconds, units)
        if busy:
            self._busy.add(seconds, units)
            self._long.add(seconds, units)
