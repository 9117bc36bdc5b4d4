"""The client's side of the wire as a state machine: no clock, no loop, no socket.

The program that uses it hands over what it receives (`receive_text`, `receive_binary`, `disconnected`), sends in order
the JSON texts that `take` returns, and reads what became of its contexts from the contexts themselves.  One session
outlives its connections: contexts of which nothing was spoken are said again on the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from protocol.client_context import ClientContext, State
from protocol.client_errors import ConnectionLost, ContextFailed, ProtocolViolation, RefusedError, SpeechError
from protocol.client_values import Ready
from protocol.codes import ErrorCode
from protocol.config import ENCODED_FORMATS
from protocol.framing import AudioHeader
from protocol.messages import PROTOCOL_VERSION, Voice
from protocol.parsing import MOST_OFFSET_MS

_MOST_BYTES_PER_CHARACTER = 6  # of JSON: \u001f
_BYTES_AROUND_TEXT = 1024
_MOST_ATTEMPTS = 3  # to say a context: it may be what breaks the connection


class ClientSession:
    """`config`: keys of `session.config` for every connection; the framing is `header` where the format has one."""

    def __init__(self, config: Mapping[str, object]) -> None:
        self.ready: Ready | None = None
        self.config: Mapping[str, object] = {}  # the effective one
        self.configured = False  # on this connection; before, nothing may be said
        self.refused: RefusedError | None = None  # the config
        self.fatal: ConnectionLost | None = None  # why the server is about to close
        self._ending = False  # the server opens no more contexts on this connection
        framing = "bare" if config.get("response_format") in ENCODED_FORMATS else "header"
        self._wanted = {**config, "framing": framing}
        orjson.dumps(self._wanted)  # TypeError for what JSON cannot say, here and not once it is sent
        self._contexts: dict[str, ClientContext] = {}  # in opening order, those that have not ended
        self._speaking: ClientContext | None = None
        self._opened = 0
        self._out: list[bytes] = []

    @property
    def contexts(self) -> list[ClientContext]:
        """Those that have not ended, in opening order."""
        return list(self._contexts.values())

    @property
    def wants_connection(self) -> bool:
        """Something waits to be said."""
        return any(context.queue for context in self._contexts.values())

    def pump(self) -> bool:
        """Say what waits, as far as there is room for it -> whether there is something to send."""
        for context in self._contexts.values():
            self._pump(context)
        return bool(self._out)

    def take(self) -> list[bytes]:
        """JSON texts to send, in order; `pump` puts them there, and some are there without it."""
        out, self._out = self._out, []
        return out

    def open(self, **opening: object) -> ClientContext:
        """A context; `opening` may have voice, seed and language.  Raises TypeError for what JSON cannot say."""
        orjson.dumps(opening)
        self._opened += 1
        context = ClientContext(f"turn-{self._opened}", opening)
        self._contexts[context.name] = context
        return context

    def cancel(self, context: ClientContext, offset_ms: float | None = None) -> None:
        """Stop a context: its `cancelled` is set once it has ended.  Raises ValueError for an impossible offset."""
        if offset_ms is not None and not 0 <= offset_ms <= MOST_OFFSET_MS:
            raise ValueError(f"playback_offset_ms must be from 0 to {MOST_OFFSET_MS:g}; got {offset_ms!r}")
        if context.cancel(offset_ms):
            offset = {} if offset_ms is None else {"playback_offset_ms": float(offset_ms)}
            self._say("input.cancel", context_id=context.name, **offset)
        if context.ended:
            self._forget(context)

    # Connection -----------------------------------------------------------------------------------------------------

    def disconnected(self, error: SpeechError) -> None:
        """The connection is gone: contexts that spoke end with `error`, the others wait for the next connection."""
        self.configured, self.fatal, self._ending, self._speaking = False, None, False, None
        self._out.clear()
        for context in self.contexts:
            self._put_off(context, error)

    def give_up(self, error: SpeechError) -> None:
        """No connection will come: every context ends with `error`."""
        self._out.clear()
        for context in self.contexts:
            self._end(context, error)

    # Receiving ------------------------------------------------------------------------------------------------------

    def receive_binary(self, message: bytes) -> None:
        """Audio.  Raises ProtocolViolation where owner, order, position or length do not fit."""
        speaking = self._speaking
        if speaking is not None and not speaking.ended and speaking.encoded:
            speaking.encoded_audio(message)
            return
        try:
            header = AudioHeader.unpack(message)
        except ValueError as error:
            raise _violation(f"audio without a header: {error}") from error
        if speaking is None or speaking.ended or speaking.number != header.context_number:
            raise _violation(f"audio of context number {header.context_number}, whose turn it is not")
        speaking.audio(header, message)

    def receive_text(self, message: str | bytes) -> None:
        """Control.  Types that a newer server may have are ignored.  Raises ProtocolViolation."""
        try:
            fields = orjson.loads(message)
            kind, name = fields["type"], fields.get("context_id")
            if kind == "error":
                self._on_error(fields, name)
            elif kind in _SESSION_HANDLERS:
                _SESSION_HANDLERS[kind](self, fields)
            elif kind in _CONTEXT_HANDLERS and name in self._contexts:
                _CONTEXT_HANDLERS[kind](self, self._contexts[name], fields)
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise _violation(f"a message that cannot be read: {error!r}") from error

    def _on_ready(self, fields: dict[str, Any]) -> None:
        if fields["protocol"] != PROTOCOL_VERSION:
            raise _violation(f"protocol {fields['protocol']}; this client speaks {PROTOCOL_VERSION}")
        voices = tuple(Voice(voice["name"], voice["language"], voice["description"]) for voice in fields["voices"])
        names = ("sample_rate", "frame_samples", "prebuffer_ms", "limits")
        self.ready = Ready(fields["session_id"], fields["model"], voices, *(fields[name] for name in names))
        self._out.clear()  # of an attempt to connect that came no further
        self._say("session.config", **self._wanted)

    def _on_configured(self, fields: dict[str, Any]) -> None:
        self.config, self.configured = fields["config"], True

    def _on_pong(self, fields: dict[str, Any]) -> None:
        if (context := self._contexts.get(fields.get("id"))) is not None:
            self._end(context, context.error)

    def _on_error(self, fields: dict[str, Any], name: str | None) -> None:
        details = fields["code"], fields["message"], fields.get("retry_after_ms")
        about = self._contexts.get(fields.get("about_context_id"))
        if name in self._contexts and fields["code"] == ErrorCode.SHUTTING_DOWN:
            self._ending = True
            self._put_off(self._contexts[name], ContextFailed(*details))
        elif name in self._contexts:
            self._end(self._contexts[name], ContextFailed(*details))
        elif fields["fatal"]:
            self.fatal = ConnectionLost(*details)
        elif not self.configured:
            self.refused = RefusedError(*details)
        elif about is not None and about.known and about.state is not State.CANCELLING:
            about.error = RefusedError(*details)
            self.cancel(about)
            self._say("session.ping", id=about.name)  # the cancel of a context that never opened has no answer

    def _on_start(self, context: ClientContext, fields: dict[str, Any]) -> None:
        if self._speaking is not None and not self._speaking.ended:
            raise _violation(f"context {context.name} begins while {self._speaking.name} speaks")
        context.start(fields["context_number"], fields["format"], fields["sample_rate"])
        self._speaking = context

    def _on_segment(self, context: ClientContext, fields: dict[str, Any]) -> None:
        context.segment(fields["text"], fields["start_sample"])

    def _on_flushed(self, context: ClientContext, fields: dict[str, Any]) -> None:
        if context.state is not State.CANCELLING:
            context.answer_flush(fields["flush_id"], fields["end_sample"])

    def _on_audio_done(self, context: ClientContext, fields: dict[str, Any]) -> None:
        context.check_position("the end", fields["samples"])
        self._speaking = None

    def _on_done(self, context: ClientContext, fields: dict[str, Any]) -> None:
        context.finish(fields)
        self._forget(context)

    def _on_cancelled(self, context: ClientContext, fields: dict[str, Any]) -> None:
        context.fence(fields["text_spoken"], fields["text_remaining"], fields["samples_sent"])
        self._forget(context)

    # Sending --------------------------------------------------------------------------------------------------------

    def _pump(self, context: ClientContext) -> None:
        if not self.configured or not (context.known or (self._has_place and not self._ending)):
            return
        while context.queue and (item := self._next(context)) is not None:
            kind, value = item
            field = {"input.text": {"text": value}, "input.flush": {"flush_id": value}, "input.done": {}}[kind]
            opening = context.opening if kind == "input.text" and not context.known else {}
            self._say(kind, context_id=context.name, **field, **opening)
            context.known = context.known or kind != "input.flush"
            if not context.spoke:
                context.sent.append(item)

    def _next(self, context: ClientContext) -> tuple[str, str] | None:
        """Take the first of the queue, or of a text that part for which there is room; None: wait."""
        kind, value = context.queue[0]
        if kind == "input.text":
            value = value[: self._room(context)]
            if not value:
                return None
            context.unannounced += len(value)
            rest = context.queue.popleft()[1][len(value) :]
            if rest:
                context.queue.appendleft((kind, rest))
            return kind, value
        if kind == "input.flush":
            if len(context.flushes) >= self.ready.limits["pending_flushes"]:
                return None
            context.flushes.append(value)
        return context.queue.popleft()

    def _room(self, context: ClientContext) -> int:
        """Characters that the server still takes of the context, and in one message."""
        limits = self.ready.limits
        longest = (limits["message_bytes"] - _BYTES_AROUND_TEXT) // _MOST_BYTES_PER_CHARACTER
        return max(0, int(min(limits["text_characters"] - context.unannounced, longest)))

    @property
    def _has_place(self) -> bool:
        """The server takes one more context."""
        return sum(context.known for context in self._contexts.values()) < self.ready.limits["contexts"]

    def _say(self, kind: str, **fields: object) -> None:
        self._out.append(orjson.dumps({"type": kind, **fields}))

    def _put_off(self, context: ClientContext, error: SpeechError) -> None:
        """It cannot go on here: where nothing was spoken it waits for the next connection, else it ends."""
        if context.spoke or context.state is State.CANCELLING or context.attempts >= _MOST_ATTEMPTS:
            self._end(context, error)
        else:
            context.rewind()

    def _end(self, context: ClientContext, error: SpeechError | None) -> None:
        context.end(error)
        self._forget(context)

    def _forget(self, context: ClientContext) -> None:
        self._contexts.pop(context.name, None)


def _violation(message: str) -> ProtocolViolation:
    return ProtocolViolation(ErrorCode.PROTOCOL_ERROR, message)


_SESSION_HANDLERS = {
    "session.ready": ClientSession._on_ready,
    "session.configured": ClientSession._on_configured,
    "session.pong": ClientSession._on_pong,
}
_CONTEXT_HANDLERS = {
    "audio.start": ClientSession._on_start,
    "audio.segment": ClientSession._on_segment,
    "input.flushed": ClientSession._on_flushed,
    "audio.done": ClientSession._on_audio_done,
    "session.done": ClientSession._on_done,
    "input.cancelled": ClientSession._on_cancelled,
}
