"""What both forms of the socket share: how a client's text becomes contexts of the session, and how audio is told.

A client's context is a `Turn`.  It is spoken as one context of the session, its `Speech`; as several where it makes way
for another turn after a flush, or where its id is used again.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

import orjson

from protocol.codes import CloseCode, ErrorCode, FatalRefusal
from protocol.compat.elevenlabs.alignment import Alignment, Told
from protocol.compat.elevenlabs.errors import close_reason, error_message
from protocol.compat.elevenlabs.messages import Said
from protocol.config import SessionConfig
from protocol.context import Context
from protocol.dialect import Dialect
from protocol.limits import Limits
from protocol.messages import ClientMessage, Flush, Hello, Metrics, Ping, Text, Usage

_SENTENCE_ENDS = tuple(".!?…。！？")
_CLOSERS = "\"')]}»”’」』）"


@dataclass(slots=True, eq=False)
class Turn:
    """A context of the client, `name` None if it has given none.

    `speech`: what takes its text now.  `flushed`: by the client, and no text came since.  `spaced`: another word may
    follow without a space between.  `closed`: it takes no more text, and ends with its last speech.
    """

    name: str | None = None
    speed: float | None = None
    speech: Speech | None = None
    flushed: bool = False
    spaced: bool = True
    closed: bool = False


@dataclass(slots=True, eq=False)
class Speech:
    """A context of the session.  `flushes`: those that are not answered yet."""

    id: str
    turn: Turn
    alignment: Alignment | None = None
    flushes: int = 0


class Speaking(Dialect):
    """`auto_mode`: a message that ends with a sentence is spoken at once.  `inactivity_s`: for a message to clients."""

    def __init__(self, auto_mode: bool, inactivity_s: float) -> None:
        super().__init__()
        self._auto_mode, self._inactivity_s = auto_mode, inactivity_s
        self._most_flushes = 0
        self._speeches: dict[str, Speech] = {}
        self._opened = 0

    # From the client ------------------------------------------------------------------------------------------------

    def _take(self, turn: Turn, said: Said) -> list[ClientMessage]:
        """Text, flush, settings or a sign of life of a turn that takes text."""
        self._set_speed(turn, said.speed)
        text, messages = said.text or "", []
        if text.strip() or (text and not turn.spaced):
            messages += self._speak(turn, text)
        elif turn.speech is not None and not said.flush:
            messages.append(Ping(context_id=turn.speech.id))  # its idle clock begins anew
        if said.flush:
            messages += self._flush(turn)
            turn.flushed = True
        return messages

    def _speak(self, turn: Turn, text: str) -> list[ClientMessage]:
        if turn.speech is None:
            self._opened += 1
            turn.speech = self._speeches[str(self._opened)] = Speech(str(self._opened), turn)
        turn.flushed, turn.spaced = False, text[-1].isspace()
        overrides = {} if turn.speed is None else {"speed": turn.speed}
        messages: list[ClientMessage] = [Text(text, turn.speech.id, overrides)]
        is_sentence = text.rstrip().rstrip(_CLOSERS).endswith(_SENTENCE_ENDS)
        if self._auto_mode and is_sentence and turn.speech.flushes < self._most_flushes:
            messages += self._flush(turn)
        return messages

    def _flush(self, turn: Turn) -> list[ClientMessage]:
        if turn.speech is None:
            return []
        turn.speech.flushes += 1
        return [*self._space(turn), Flush(turn.speech.id)]

    def _space(self, turn: Turn) -> list[ClientMessage]:
        """The space that clients are told to end their text with; without it their last word never ends."""
        if turn.spaced or turn.speech is None:
            return []
        turn.spaced = True
        return [Text(" ", turn.speech.id)]

    def _set_speed(self, turn: Turn, speed: float | None) -> None:
        """Raises FatalRefusal where it is too late."""
        if speed is None or speed == (turn.speed or 1.0):
            return
        if self._parts(turn):
            message = f"voice_settings.speed must not change within a context; got {speed:g}"
            raise FatalRefusal(ErrorCode.CONFIG_LOCKED, CloseCode.POLICY, message)
        turn.speed = speed

    def _parts(self, turn: Turn) -> list[Speech]:
        """Those that have not ended."""
        return [speech for speech in self._speeches.values() if speech.turn is turn]

    # To the client --------------------------------------------------------------------------------------------------

    def ready(self, hello: Hello, config: SessionConfig, limits: Limits) -> None:
        self._most_flushes = limits.pending_flushes // 2  # the other half is for those that the client asks for

    def audio_start(self, context: Context) -> None:
        self._speeches[context.name].alignment = Alignment(context.config.rate)

    def audio_segment(self, context: Context, spoken: str) -> None:
        self._alignment(context).begin(context.record.segments[-1].text, spoken)

    def audio(self, context: Context, data: bytes, samples: int) -> None:
        alignment = self._alignment(context)
        if samples:
            alignment.advance(samples, context.record.segments[-1].total)
        if data:
            self._say_audio(self._speeches[context.name].turn, data, alignment.take())

    def flushed(self, name: str | None, flush_id: str | None, end_sample: int) -> None:
        if name in self._speeches:
            self._speeches[name].flushes -= 1
            self._say_rest(self._speeches[name])

    def session_done(self, context: Context, reason: str, seed: int, usage: Usage, metrics: Metrics) -> None:
        self._say_rest(self._speeches[context.name])
        self._end(self._speeches[context.name])

    def cancelled(self, context: Context, spoken: str, remaining: str) -> None:
        self._end(self._speeches[context.name])

    def error(self, code: ErrorCode, message: str, fatal: bool = False, **given: object) -> None:
        if code is ErrorCode.CONTEXT_ENDED:
            return  # the client was told with what it has ended
        if code is ErrorCode.IDLE_TIMEOUT:
            message = f"Have not received a new text input within the timeout of {self._inactivity_s:g} seconds."
        ended = self._speeches.pop(given.get("context_id"), None)
        about = ended or self._speeches.get(given.get("about_context_id"))
        if ended is not None:
            ended.turn.closed = True
            self._forget(ended.turn)
        told = {} if about is None else self._tag(about.turn)
        self._say(error_message(code, message) | told, error=code)

    def closing_reason(self, code: ErrorCode, message: str) -> str:
        return close_reason(message)

    def _alignment(self, context: Context) -> Alignment:
        return self._speeches[context.name].alignment

    def _say_rest(self, speech: Speech) -> None:
        """Characters that no audio has told: of text without a sound."""
        rest = (None, None) if speech.alignment is None else speech.alignment.rest()
        if any(rest):
            self._say_audio(speech.turn, b"", rest)

    def _say_audio(self, turn: Turn, data: bytes, told: tuple[Told | None, Told | None]) -> None:
        audio = base64.b64encode(data).decode() if data else None
        alignment, normalized = told
        fields = {"audio": audio, "isFinal": None, "normalizedAlignment": normalized, "alignment": alignment}
        self._say(fields | self._tag(turn))

    def _end(self, speech: Speech) -> None:
        """It is over; and so is its turn, if no more text of that may come."""
        del self._speeches[speech.id]
        turn = speech.turn
        if turn.speech is speech:  # the client has fallen silent, or the connection ends
            turn.speech, turn.closed = None, True
        if turn.closed and not self._parts(turn):
            self._finish(turn)

    def _finish(self, turn: Turn) -> None:
        """Its last message."""
        self._forget(turn)
        self._say({"audio": None, "isFinal": True, "normalizedAlignment": None, "alignment": None} | self._tag(turn))

    def _say(self, fields: dict[str, object], error: ErrorCode | None = None) -> None:
        self._say_text(orjson.dumps(fields), error)

    # What the two differ in -----------------------------------------------------------------------------------------

    def _tag(self, turn: Turn) -> dict[str, object]:
        """What a message says of the context that it is about."""
        return {}

    def _forget(self, turn: Turn) -> None:
        """The turn takes no more text."""
