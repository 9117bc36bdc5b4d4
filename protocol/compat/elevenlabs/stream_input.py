"""`stream-input`: one text for each connection.  An empty text is its end, then the server closes."""

from __future__ import annotations

from protocol.codes import CloseCode, ErrorCode, FatalRefusal
from protocol.compat.elevenlabs.messages import read_message
from protocol.compat.elevenlabs.speaking import Speaking, Turn
from protocol.messages import ClientMessage, Finish


class StreamInput(Speaking):
    """An error of any kind ends the connection."""

    failure_ends_all = True

    def __init__(self, auto_mode: bool, inactivity_s: float) -> None:
        super().__init__(auto_mode, inactivity_s)
        self._turn = Turn()

    def hear(self, data: str) -> list[ClientMessage]:
        said = read_message(data)
        if self._turn.closed:
            return []
        if said.text is None and not said.flush:
            raise FatalRefusal(ErrorCode.BAD_MESSAGE, CloseCode.POLICY, "a message needs text, a string")
        return self._end_text() if said.text == "" else self._take(self._turn, said)

    def error(self, code: ErrorCode, message: str, fatal: bool = False, **given: object) -> None:
        if fatal or "context_id" not in given:  # else it comes once more, as what the connection ends with
            super().error(code, message, fatal, **given)

    def _end_text(self) -> list[ClientMessage]:
        messages = [*self._space(self._turn), Finish()]
        self._turn.closed, self._turn.speech = True, None
        if not self._parts(self._turn):
            self._finish(self._turn)
        return messages
