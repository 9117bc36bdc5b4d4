"""The server's side of one connection as a state machine: no clock, no loop, no socket.

The program that uses it hands over what it receives (`receive_text`, `receive_binary`, `tick`) and acts on the events
that come back; it tells what happens to the audio (`audio_start` … `done`); and it sends, in order, the frames that
`take_frames` returns, one WebSocket message each.  Refusals, answers and fences are queued by the session itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from protocol.codes import OPENING_CODES, TERMINAL_CODES, CloseCode, ErrorCode, LocalProtocolError, Refusal
from protocol.config import ConfigRules, SessionConfig
from protocol.context import Context, Input, Output
from protocol.events import ContextCancelled, ContextOpened, Event, FlushRequested, InputEnded, TextReceived
from protocol.limits import Limits
from protocol.messages import (
    Cancel,
    ClientMessage,
    Close,
    Config,
    Done,
    Flush,
    Frame,
    Hello,
    MessageType,
    Metrics,
    Ping,
    Text,
    Usage,
)
from protocol.outgoing import Outgoing
from protocol.parsing import parse_message
from protocol.registry import AlreadyRefused, Registry

PROGRESS_AFTER_S = 1.5  # so that a silent context shows a sign of life at least every 2 s, whatever the caller's tick


@dataclass(frozen=True, slots=True)
class Closing:
    """Send all frames, then close the socket with this."""

    code: CloseCode
    reason: str


class ServerSession:
    """Times are seconds of the caller's clock; they only need to grow."""

    def __init__(self, hello: Hello, rules: ConfigRules, limits: Limits, now: float) -> None:
        self.config: SessionConfig = rules.defaults
        self.closing: Closing | None = None
        self._rules, self._limits = rules, limits
        self._contexts = Registry(limits.remembered_ids)
        self._busy_at = now  # last message of the client or end of a context
        self._ending: str | None = None  # why there are no more contexts
        self._out = Outgoing()
        self._out.ready(hello, self.config, limits)

    # What the caller reads ------------------------------------------------------------------------------------------

    @property
    def front(self) -> int | None:
        """The context whose turn it is to send audio: the oldest that has not ended."""
        return self._contexts.front

    @property
    def open_contexts(self) -> tuple[int, ...]:
        """Contexts without a terminal message, in opening order."""
        return tuple(context.number for context in self._contexts.all)

    @property
    def waiting_frames(self) -> int:
        """Frames that `take_frames` would return."""
        return len(self._out)

    def take_frames(self) -> list[Frame]:
        """What is to be sent now, in order."""
        return self._out.take()

    def silent(self, now: float) -> list[int]:
        """Open contexts that have shown no sign of life for so long that `progress` is due."""
        return [context.number for context in self._contexts.all if now - context.shown_at >= PROGRESS_AFTER_S]

    # Receiving ------------------------------------------------------------------------------------------------------

    def receive_text(self, data: bytes, now: float) -> list[Event]:
        """A text message.  Never raises for what a client sends."""
        if self.closing:
            return []
        self._busy_at = now
        if len(data) > self._limits.config_message_bytes:
            return self._too_big(data, self._limits.config_message_bytes)
        try:
            message = parse_message(data.decode("utf-8"))
        except UnicodeDecodeError:
            return self.fail_session(ErrorCode.PROTOCOL_ERROR, CloseCode.NOT_UTF8, "a text message must be UTF-8")
        except Refusal as refusal:
            message = refusal
        if len(data) > self._limits.message_bytes and not isinstance(message, Config):
            return self._too_big(data, self._limits.message_bytes)
        events = self._refuse(message) if isinstance(message, Refusal) else self._handle(message, now)
        self._end_with_last()
        return events

    def receive_binary(self, now: float) -> list[Event]:
        """A binary message: a client has none to send."""
        self._busy_at = now
        message = "binary messages are not accepted: control is JSON text"
        return self.fail_session(ErrorCode.PROTOCOL_ERROR, CloseCode.BINARY_INPUT, message)

    def receive_too_big(self) -> list[Event]:
        """A message that is larger than every limit, and was not even taken in."""
        message = f"a message exceeds the limit of {self._limits.config_message_bytes} bytes"
        return self.fail_session(ErrorCode.MESSAGE_TOO_BIG, CloseCode.TOO_BIG, message)

    def tick(self, now: float) -> list[Event]:
        """Apply the idle clocks: of the contexts, and of the connection while none is open."""
        if self.closing:
            return []
        if len(self._contexts):
            self._busy_at = now
            idle = [context for context in self._contexts.all if self._is_idle(context, now)]
            return [event for context in idle for event in self._end_input(context, "idle")]
        if now - self._busy_at < self._limits.idle_s:
            return []
        message = f"no message for {self._limits.idle_s:g} s and no open context"
        return self.fail_session(ErrorCode.IDLE_TIMEOUT, CloseCode.POLICY, message)

    # Sending --------------------------------------------------------------------------------------------------------

    def text_taken(self, number: int, characters: int) -> None:
        """So many characters of the context are no longer buffered: they are being spoken."""
        self._contexts.get(number).buffered -= characters

    def audio_start(self, number: int) -> None:
        """The context's audio follows."""
        context = self._contexts.in_turn(number)
        context.send("audio.start")
        self._out.audio_start(context)

    def audio_segment(self, number: int, text: str, spoken: str) -> None:
        """The next audio speaks `text`, which continues the received text; `spoken` is what the model is given."""
        context = self._contexts.in_turn(number)
        context.send("audio.segment")
        context.record.begin(text)
        self._out.audio_segment(context, spoken)

    def audio(self, number: int, data: bytes, samples: int, now: float, segment_samples: int | None = None) -> None:
        """One binary message of `samples` whole samples.  `segment_samples`: the segment's total, if known by now.

        In an encoded format: `samples` were given to the encoder, and `data`, which may be empty, came out of it.
        """
        context = self._contexts.in_turn(number)
        width = context.config.bytes_per_sample
        if samples < 1 or (width is not None and len(data) != samples * width):
            raise LocalProtocolError(f"{len(data)} bytes are not {samples} samples of {context.config.response_format}")
        context.send("audio")
        self._out.audio(context, data, samples)
        context.count(len(data), samples, segment_samples, now)

    def audio_rest(self, number: int, data: bytes, now: float) -> None:
        """The last binary message of a context in an encoded format: samples that were counted before."""
        context = self._contexts.in_turn(number)
        if not data or context.config.bytes_per_sample is not None:
            raise LocalProtocolError(f"{len(data)} bytes cannot be the rest of {context.config.response_format}")
        context.send("audio rest")
        self._out.audio(context, data, 0)
        context.count(len(data), 0, None, now)
        context.record.close()

    def flushed(self, number: int) -> None:
        """All audio of the oldest unanswered flush is sent."""
        context = self._contexts.in_turn(number)
        if not context.flushes:
            raise LocalProtocolError(f"context {number} has no flush to answer")
        context.send("input.flushed")
        context.record.close()
        self._out.flushed(context.name, context.flushes.popleft(), context.record.samples)

    def done(self, number: int, reason: str, seed: int, usage: Usage, metrics: Metrics) -> None:
        """All is sent: `audio.done` if there was audio, then `session.done`.  `reason`: done, max_length or idle."""
        context = self._contexts.in_turn(number)
        context.check_drained()
        self._audio_done(context, None)
        context.send("session.done")
        self._out.session_done(context, reason, seed, usage, metrics)
        self._contexts.remove(context)
        self._end_with_last()

    def failed(self, number: int, code: ErrorCode, message: str, retry_after_ms: int | None = None) -> None:
        """The context ends with an error, at once, whether or not it is its turn."""
        if code not in TERMINAL_CODES:
            raise LocalProtocolError(f"{code} does not end a context")
        self._fail(self._contexts.get(number), code, message, retry_after_ms)
        self._end_with_last()

    def progress(self, number: int, state: str, now: float, queue_position: int | None = None) -> None:
        """A sign of life of a silent context: queued, generating, waiting_text or waiting_turn."""
        context = self._contexts.get(number)
        context.shown_at = now
        self._out.progress(context, state, queue_position)

    def wind_down(self, message: str) -> None:
        """The server is about to end: open contexts go on, new ones fail, and the socket closes with the last one."""
        self._ending = message
        self._end_with_last()

    def shut_down(self, message: str) -> list[Event]:
        """The server ends: each open context fails with shutting_down, then the socket closes with 1012."""
        numbers = self.open_contexts
        for number in numbers:
            self._fail(self._contexts.get(number), ErrorCode.SHUTTING_DOWN, message)
        self.wind_down(message)
        return [ContextCancelled(number) for number in numbers]

    def fail_session(self, code: ErrorCode, close_code: CloseCode, message: str) -> list[Event]:
        """A fatal error: open contexts are cancelled, then the socket closes."""
        if self.closing:
            return []
        events = self._cancel_all()
        self._out.error(code, message, fatal=True)
        self.closing = Closing(close_code, code)
        return events

    # Messages of the client -----------------------------------------------------------------------------------------

    def _handle(self, message: ClientMessage, now: float) -> list[Event]:
        try:
            return self._HANDLERS[type(message)](self, message, now)
        except AlreadyRefused:
            return []
        except Refusal as refusal:
            return self._refuse(refusal)

    def _refuse(self, refusal: Refusal) -> list[Event]:
        self._out.error(refusal.code, refusal.message, about_context_id=refusal.context_id)
        return []

    def _on_config(self, message: Config, _: float) -> list[Event]:
        if len(self._contexts):
            names = ", ".join(context.name for context in self._contexts.all)
            raise Refusal(ErrorCode.CONFIG_LOCKED, f"the config is locked until the open contexts have ended: {names}")
        self.config = self._rules.apply(self.config, message.changes)
        self._out.configured(self.config)
        return []

    def _on_text(self, message: Text, now: float) -> list[Event]:
        context = self._contexts.taking(message.context_id, MessageType.TEXT)
        self._check_room(context, message)
        if context is None:
            return self._open_with(message, now) if message.text else []
        if message.overrides:
            keys = ", ".join(message.overrides)
            raise Refusal(ErrorCode.CONFIG_LOCKED, f"{keys}: only with the text that opens the context", context.name)
        context.heard_of = now
        return self._append(context, message.text)

    def _open_with(self, message: Text, now: float) -> list[Event]:
        try:
            config = self._rules.apply(self.config, message.overrides)
        except Refusal as refusal:
            refusal.context_id = message.context_id
            if refusal.code not in OPENING_CODES:
                raise
            return self._stillborn(message.context_id, refusal, now)
        return self._open(message.context_id, config, now, message.text)

    def _on_flush(self, message: Flush, now: float) -> list[Event]:
        context = self._contexts.taking(message.context_id, MessageType.FLUSH)
        if context is None:
            self._out.flushed(message.context_id, message.flush_id, 0)
            return []
        if len(context.flushes) >= self._limits.pending_flushes:
            raise Refusal(ErrorCode.RATE_LIMITED, f"{len(context.flushes)} flushes are not answered yet", context.name)
        context.heard_of = now
        context.take(MessageType.FLUSH)
        context.flushes.append(message.flush_id)
        return [*self._append(context, "", complete=True), FlushRequested(context.number)]

    def _on_done(self, message: Done, now: float) -> list[Event]:
        context = self._contexts.taking(message.context_id, MessageType.DONE)
        if context is not None:
            return self._end_input(context)
        events = self._open(message.context_id, self.config, now, "")
        for event in events:
            events = [event, *self._end_input(self._contexts.get(event.number))]
        return events

    def _on_cancel(self, message: Cancel, _: float) -> list[Event]:
        if message.context_id is None:
            return self._cancel_all()
        context = self._contexts.named(message.context_id)
        return [] if context is None else [self._cancel(context, message.playback_offset_ms)]

    def _on_ping(self, message: Ping, now: float) -> list[Event]:
        context = None if message.context_id is None else self._contexts.named(message.context_id)
        if context is not None:
            context.heard_of = now
        self._out.pong(message.id)
        return []

    def _on_close(self, _: Close, __: float) -> list[Event]:
        events = self._cancel_all()
        self.closing = Closing(CloseCode.NORMAL, "")
        return events

    _HANDLERS: ClassVar = {
        Config: _on_config,
        Text: _on_text,
        Flush: _on_flush,
        Done: _on_done,
        Cancel: _on_cancel,
        Ping: _on_ping,
        Close: _on_close,
    }

    # Contexts -------------------------------------------------------------------------------------------------------

    def _open(self, client_id: str | None, config: SessionConfig, now: float, text: str) -> list[Event]:
        if self._ending is not None:
            return self._stillborn(client_id, Refusal(ErrorCode.SHUTTING_DOWN, self._ending), now)
        if len(self._contexts) >= self._limits.contexts:
            message = f"{self._limits.contexts} contexts are open, which is the limit of a connection"
            return self._stillborn(client_id, Refusal(ErrorCode.TOO_MANY_CONTEXTS, message), now)
        context = self._contexts.add(client_id, config, now)
        return [ContextOpened(context.number, context.name, config), *self._append(context, text)]

    def _stillborn(self, client_id: str | None, refusal: Refusal, now: float) -> list[Event]:
        """A context that opens and ends at once, with an error: the caller need not know of it."""
        self._fail(self._contexts.add(client_id, self.config, now), refusal.code, refusal.message)
        return []

    def _append(self, context: Context, text: str, complete: bool = False) -> list[Event]:
        whole = context.append(text, complete)
        return [TextReceived(context.number, whole)] if whole else []

    def _end_input(self, context: Context, reason: str = "done") -> list[Event]:
        self._contexts.close_input(context)
        return [*self._append(context, "", complete=True), InputEnded(context.number, reason)]

    def _is_idle(self, context: Context, now: float) -> bool:
        return context.input is Input.OPEN and now - context.heard_of >= self._limits.context_idle_s

    def _cancel_all(self) -> list[Event]:
        return [self._cancel(context, None) for context in self._contexts.all]

    def _cancel(self, context: Context, offset_ms: float | None) -> Event:
        context.append("", complete=True)
        context.send("input.cancelled")
        self._out.cancelled(context, *context.record.split(offset_ms))
        self._contexts.remove(context)
        return ContextCancelled(context.number)

    def _fail(self, context: Context, code: ErrorCode, message: str, retry_after_ms: int | None = None) -> None:
        self._audio_done(context, code)
        context.send("error")
        self._out.error(code, message, context_id=context.name, retry_after_ms=retry_after_ms)
        self._contexts.remove(context)

    def _end_with_last(self) -> None:
        """Close if the server ends and no context is open."""
        if self._ending is not None and not len(self._contexts):
            self.fail_session(ErrorCode.SHUTTING_DOWN, CloseCode.RESTART, self._ending)

    def _audio_done(self, context: Context, error: ErrorCode | None) -> None:
        if context.output is not Output.SILENT:
            context.send("audio.done")
            self._out.audio_done(context, error)

    # Limits ---------------------------------------------------------------------------------------------------------

    def _check_room(self, context: Context | None, message: Text) -> None:
        buffered, room = context.buffered if context else 0, self._limits.text_characters
        if buffered + len(message.text) > room:
            sizes = f"{len(message.text)} characters and {buffered} buffered ones"
            text = f"{sizes} exceed the limit of {room}; nothing was appended"
            raise Refusal(ErrorCode.TEXT_TOO_LONG, text, message.context_id)

    def _too_big(self, data: bytes, limit: int) -> list[Event]:
        message = f"a message of {len(data)} bytes exceeds the limit of {limit}"
        return self.fail_session(ErrorCode.MESSAGE_TOO_BIG, CloseCode.TOO_BIG, message)
