"""`multi-stream-input`: contexts that the client opens and closes by ids of its own, spoken one after the other.

`close_context` is what clients send both at the end of a text and when its listener has interrupted it.  Behind a flush
it is the former: what was sent is spoken.  Else, or said once more, it is the latter: nothing of the context follows.
"""

from __future__ import annotations

from protocol.codes import CloseCode, ErrorCode, FatalRefusal
from protocol.compat.elevenlabs.messages import Said, read_message
from protocol.compat.elevenlabs.speaking import Speaking, Turn
from protocol.messages import Cancel, ClientMessage, Done, Finish

MOST_CONTEXTS = 5


class MultiStreamInput(Speaking):
    """Errors of one context leave the others alone."""

    def __init__(self, auto_mode: bool, inactivity_s: float) -> None:
        super().__init__(auto_mode, inactivity_s)
        self._turns: dict[str | None, Turn] = {}  # those that take text
        self._is_over = False

    def hear(self, data: str) -> list[ClientMessage]:
        said = read_message(data)
        if self._is_over:
            return []
        if said.close_socket:
            return self._close_socket()
        if said.close_context:
            return self._close(said)
        turn = self._turns.get(said.context_id)
        if turn is None:
            if not said.text:
                return []  # a sign of life of the connection
            turn = self._open(said.context_id)
        return self._take(turn, said)

    def _open(self, name: str | None) -> Turn:
        if len(self._turns) >= MOST_CONTEXTS:
            message = f"{MOST_CONTEXTS} contexts are open, which is the limit of a connection; close one first"
            raise FatalRefusal(ErrorCode.TOO_MANY_CONTEXTS, CloseCode.POLICY, message)
        turn = self._turns[name] = Turn(name)
        return turn

    def _speak(self, turn: Turn, text: str) -> list[ClientMessage]:
        """The session speaks one context after the other: those from which nothing is due make way for a new one."""
        others = [] if turn.speech else [each for each in self._turns.values() if each.speech and each.flushed]
        messages: list[ClientMessage] = [Done(each.speech.id) for each in others]
        for each in others:
            each.speech = None
        return messages + super()._speak(turn, text)

    def _close(self, said: Said) -> list[ClientMessage]:
        turn = self._turns.get(said.context_id)
        if turn is None:
            return self._cancel([each for each in self._closing() if each.name == said.context_id])
        messages = []
        if said.text and said.text.strip():  # the last of it
            messages += self._take(turn, said)
            turn.flushed = True
        messages += self._drain(turn) if turn.flushed else self._cancel([turn])
        if not self._parts(turn):
            self._finish(turn)
        self._forget(turn)
        return messages

    def _drain(self, turn: Turn) -> list[ClientMessage]:
        """All of it is spoken, then it ends."""
        messages = [*self._space(turn), Done(turn.speech.id)] if turn.speech else []
        turn.closed, turn.speech = True, None
        return messages

    def _cancel(self, turns: list[Turn]) -> list[ClientMessage]:
        """Nothing more of them is said but that they have ended."""
        for turn in turns:
            turn.closed, turn.speech = True, None
        return [Cancel(speech.id) for turn in turns for speech in self._parts(turn)]

    def _closing(self) -> list[Turn]:
        """Turns that take no more text and are still spoken."""
        return list(dict.fromkeys(speech.turn for speech in self._speeches.values() if speech.turn.closed))

    def _close_socket(self) -> list[ClientMessage]:
        self._is_over = True
        messages = [message for turn in list(self._turns.values()) for message in self._drain(turn)]
        self._turns.clear()
        return [*messages, Finish()]

    def _tag(self, turn: Turn) -> dict[str, object]:
        return {"contextId": turn.name}

    def _forget(self, turn: Turn) -> None:
        if self._turns.get(turn.name) is turn:
            del self._turns[turn.name]
