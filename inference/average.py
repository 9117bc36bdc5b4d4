"""A moving average of what was measured."""

from __future__ import annotations

_FADE = 0.8  # what a measurement counts for when the next one comes: a change is followed within some ten of them


class MovingAverage:
    """Seconds for each unit of work: two sums that fade, so that much work counts for more than little."""

    def __init__(self, value: float = 0.0, units: float = 0.0) -> None:
        """It starts with `value`, as if measured once over `units` units of work."""
        self._seconds, self._units = value * units, units

    @property
    def value(self) -> float:
        """0 as long as nothing was measured."""
        return self._seconds / self._units if self._units else 0.0

    def add(self, seconds: float, units: float = 1.0) -> None:
        """`units` of work have taken so many seconds."""
        self._seconds = _FADE * self._seconds + seconds
        self._units = _FADE * self._units + units
