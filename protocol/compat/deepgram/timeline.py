"""What a listener has played since the session began, as far as it tells."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interrupted:
    """`position`: milliseconds played; `is_exact`: the listener has told them, else all that was sent counts."""

    position: float
    is_exact: bool


class Timeline:
    """Milliseconds from the start of the session.  Each interrupt sets right what was played.

    `position`: where the active turn's audio begins.  `latest`: where the last interrupt was.
    """

    def __init__(self) -> None:
        self.position = self.latest = 0.0
        self._turn: str | None = None  # that is being interrupted
        self._offset: float | None = None

    def played(self, duration: float) -> None:
        """A turn is over, and its audio will be heard."""
        self.position += duration

    def set_right(self, offset: float) -> None:
        """The listener is there, and has dropped what it was still to play."""
        self.position = self.latest = offset

    def interrupt(self, turn: str, offset: float | None) -> float | None:
        """The turn is to be cut at `offset` -> the offset from the turn's beginning, None if none is known."""
        self._turn, self._offset = turn, offset
        return None if offset is None else max(0.0, offset - self.position)

    def interrupted(self, turn: str, sent: float) -> Interrupted | None:
        """The turn was cut when `sent` milliseconds of it had been sent; None if that was no interrupt's doing."""
        if turn != self._turn:
            return None
        self._turn = None
        self.set_right(self.position + sent if self._offset is None else self._offset)
        return Interrupted(self.position, self._offset is not None)
