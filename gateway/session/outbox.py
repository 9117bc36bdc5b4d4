"""Audio that waits to be sent on one connection, and whether more of it may be made.

Each open context has a lane.  Lanes are emptied one after the other, in opening order.  The oldest may hold what the
others leave of the budget, the others together half of it: so the one whose turn it is can always go on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from gateway.session.utterance import Item


class Lane:
    """What waits of one context.  `on_credit(granted)` is called whenever synthesis has to pause or may go on."""

    def __init__(self, on_credit: Callable[[bool], None]) -> None:
        self.items: deque[Item] = deque()
        self.seconds = 0.0
        self._on_credit, self._granted = on_credit, True

    def balance(self, held: float, budget: float) -> None:
        """Pause at `budget` seconds held, go on below half of it."""
        if self._granted and held >= budget:
            self._grant(False)
        elif not self._granted and held < budget / 2:
            self._grant(True)

    def _grant(self, granted: bool) -> None:
        self._granted = granted
        self._on_credit(granted)


class Outbox:
    """`budget_s`: seconds of audio that may wait, but for what is on its way when synthesis is paused."""

    def __init__(self, budget_s: float, wake: Callable[[], None]) -> None:
        self._budget, self._wake = budget_s, wake
        self._lanes: dict[int, Lane] = {}

    @property
    def seconds(self) -> float:
        """Audio that waits."""
        return sum(lane.seconds for lane in self._lanes.values())

    def open(self, number: int, on_credit: Callable[[bool], None]) -> None:
        """A lane for a new context, behind the others."""
        self._lanes[number] = Lane(on_credit)
        self._balance()

    def close(self, number: int) -> None:
        """Drop the lane with all that waits in it."""
        del self._lanes[number]
        self._balance()

    def has_audio(self, number: int) -> bool:
        """Audio of the context waits."""
        return self._lanes[number].seconds > 0

    def put(self, number: int, item: Item) -> None:
        """Behind all else of its context."""
        lane = self._lanes[number]
        lane.items.append(item)
        lane.seconds += item.seconds
        self._balance()
        self._wake()

    def take(self, number: int) -> Item | None:
        """The next item of a context, None if there is none yet."""
        lane = self._lanes[number]
        if not lane.items:
            return None
        item = lane.items.popleft()
        lane.seconds = sum(each.seconds for each in lane.items)
        self._balance()
        return item

    def _balance(self) -> None:
        lanes = list(self._lanes.values())
        if not lanes:
            return
        oldest, later = lanes[0], lanes[1:]
        behind = sum(lane.seconds for lane in later)
        oldest.balance(oldest.seconds, self._budget - min(behind, self._budget / 2))
        for lane in later:
            lane.balance(behind, self._budget / 2)


class Playback:
    """When the listener has heard all that was sent, as far as one can tell: it plays from the first chunk on."""

    def __init__(self) -> None:
        self._ends = 0.0

    @property
    def ends(self) -> float:
        """When that is, by the clock of `sent`; 0 before there was any."""
        return self._ends

    def sent(self, seconds: float, now: float) -> None:
        """Audio was handed over; a listener who was dry begins anew."""
        self._ends = max(self._ends, now) + seconds

    def dry_for(self, released_at: float, now: float) -> float:
        """Seconds that the listener has had nothing to hear, though something could have been made since then."""
        return max(0.0, now - max(self._ends, released_at))

    def dry_at(self, waiting_s: float, now: float) -> float | None:
        """With `waiting_s` seconds still to be sent; None: there is nothing to hear."""
        return max(self._ends, now) + waiting_s if self._ends > now or waiting_s else None
