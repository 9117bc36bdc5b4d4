"""Which stages have not been heard for longer than they promised: pure, fed with their beats and the clock."""

from __future__ import annotations

from inference.messages import Beat


class Silence:
    """Watches stages from their start, or first beat, on.

    A stage hangs if two looks in a row find its promise broken: after a pause of the gateway itself (a stopped process,
    a machine that slept) the first look may come before the beats that wait in the socket have been read.
    """

    def __init__(self) -> None:
        self._until: dict[int, float] = {}
        self._overdue: set[int] = set()

    def heard(self, beat: Beat, now: float) -> None:
        """The stage will be heard again within `beat.within_s`."""
        self._until[beat.stage_id] = now + beat.within_s
        self._overdue.discard(beat.stage_id)

    def look(self, now: float) -> int | None:
        """A stage that hangs, or None."""
        late = {stage_id for stage_id, until in self._until.items() if until < now}
        hanging = late & self._overdue
        self._overdue = late
        return min(hanging, default=None)
