"""How long to wait before stages are started anew: pure."""

from __future__ import annotations

FIRST_S = 0.5
MOST_S = 30.0


class RestartPause:
    """Twice as long after each life that was of no use: stages that die again and again at once burn no processor."""

    def __init__(self) -> None:
        self._useless = 0

    def after(self, useful: bool) -> float:
        """Seconds to wait after a life that has spoken something to its end (`useful`), or has not."""
        self._useless = 0 if useful else self._useless + 1
        return min(FIRST_S * 2 ** max(0, self._useless - 1), MOST_S)
