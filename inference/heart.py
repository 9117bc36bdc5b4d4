"""A stage's sign of life for the gateway, sent by the stage's own loop: a loop that hangs falls silent."""

from __future__ import annotations

import time
from collections.abc import Callable

from inference.messages import Beat

_MARGIN_S = 0.25  # a promise is renewed when so much of it is used up: at most four beats a second
_SHORTEST_S = 1.0  # the loop sleeps for at most half of it, and a busy machine may keep it from running for as long
_TIMES_EXPECTED = 4.0


class Heart:
    """Promises when the stage will be heard again."""

    def __init__(
        self, stage_id: int, wait_s: float, send: Callable[[Beat], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`wait_s`: connector_get_max_wait in seconds, within which a stage that hangs is to be noticed."""
        self._stage_id, self._send, self._clock = stage_id, send, clock
        self._wait_s = max(wait_s, _SHORTEST_S)
        self._until = 0.0  # when the last promise ends

    def beat(self, expected_s: float = 0.0) -> None:
        """Alive; what comes next takes about `expected_s`.  Call it before each piece of work and each sleep."""
        within = self._wait_s + _TIMES_EXPECTED * expected_s
        self._promise(within)

    def long_work(self, within_s: float) -> None:
        """Alive; what comes next may take `within_s`."""
        self._promise(max(within_s, self._wait_s))

    def _promise(self, within_s: float) -> None:
        """Tell the gateway, unless what it was told last says as much."""
        now = self._clock()
        if not within_s - _MARGIN_S <= self._until - now <= within_s:
            self._until = now + within_s
            self._send(Beat(self._stage_id, within_s))
