"""A clock that only moves when a test moves it."""

from __future__ import annotations


class Clock:
    """Seconds; called like `time.monotonic`."""

    def __init__(self, start: float = 1000.0) -> None:
        self.start = self.now = start

    def __call__(self) -> float:
        return self.now
