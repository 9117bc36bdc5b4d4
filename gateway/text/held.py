"""Text that is held back, in two forms: as it was received, and as the plain text that was read from it."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class Piece(NamedTuple):
    """Received characters and the plain text that they stand for."""

    raw: str
    plain: str


class HeldText:
    """A queue of pieces that is cut by positions of the plain text.  Nothing of the received text is ever lost."""

    def __init__(self) -> None:
        self.plain = ""
        self.raw_length = 0
        self._pieces: deque[Piece] = deque()

    def append(self, piece: Piece) -> None:
        """Add a piece at the end."""
        self.plain += piece.plain
        self.raw_length += len(piece.raw)
        self._pieces.append(piece)

    def take(self, length: int) -> Piece:
        """Cut off the first `length` characters of plain text, with what was received for them.  Marks behind them
        that stand for nothing go with them: closing ones belong there."""
        raw, missing = [], length
        while self._pieces and len(self._pieces[0].plain) <= missing:
            piece = self._pieces.popleft()
            raw.append(piece.raw)
            missing -= len(piece.plain)
        if missing:
            raw.append(self._split_first(missing))
        plain, self.plain = self.plain[:length], self.plain[length:]
        taken = "".join(raw)
        self.raw_length -= len(taken)
        return Piece(taken, plain)

    def _split_first(self, length: int) -> str:
        """Take `length` characters of the first piece; returns what was received for them: of a piece that stands for
        other characters than its own, all."""
        raw, plain = self._pieces[0]
        taken = length if raw == plain else len(raw)
        self._pieces[0] = Piece(raw[taken:], plain[length:])
        return raw[:taken]
