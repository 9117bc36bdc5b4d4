"""The server's side of one connection as a state machine: no clock, no loop, no socket.

The program that uses it hands over what it receives (`receive_text`, `receive_binary`, `tick`) and acts on the events
that come back; it tells what happens to the audio (`audio_start` … `done`); and it sends, in order, the frames that
`take_frames` returns, one WebSocket message each.  Refusals, answers and fences are queued by the session itself.
"""

from __future__ import annotations

from protocol.codes import TERMINAL_CODES, CloseCode, ErrorCode, FatalRefusal, LocalProtocolError, Refusal
from protocol.config import ConfigRules, SessionConfig
from protocol.conversation import Closing, Conversation
from protocol.dialect import Dialect
from protocol.events import Event
from protocol.limits import Limits
from protocol.messages import ClientMessage, Config, Frame, Hello, Metrics, Usage
from protocol.receiving import Receiver
from protocol.text import has_few_values

PROGRESS_AFTER_S = 1.5  # so that a silent context shows a sign of life at least every 2 s, whatever the caller's tick


class ServerSession:
    """Times are seconds of the caller's clock; they only need to grow."""

    def __init__(self, hello: Hello, rules: ConfigRules, limits: Limits, now: float, dialect: Dialect) -> None:
        self._limits = limits
        self._talk = Conversation(limits, dialect)
        self._contexts, self._out = self._talk.contexts, self._talk.out
        self._receiver = Receiver(self._talk, rules, limits)
        self._busy_at = now  # last message of the client or end of a context
        self._out.ready(hello, rules.defaults, limits)

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

    @property
    def config(self) -> SessionConfig:
        """What the next context is opened with."""
        return self._receiver.config

    @property
    def closing(self) -> Closing | None:
        """How to close the socket, once that is to be done."""
        return self._talk.closing

    def take_frames(self) -> list[Frame]:
        """What is to be sent now, in order."""
        return self._out.take()

    def silent(self, now: float) -> list[int]:
        """Open contexts that have shown no sign of life for so long that `progress` is due."""
        return [context.number for context in self._contexts.all if now - context.shown_at >= PROGRESS_AFTER_S]

    # Receiving ------------------------------------------------------------------------------------------------------

    def receive_text(self, data: bytes, now: float) -> list[Event]:
        """A text message.  Never raises for what a client sends."""
        if self._talk.closing:
            return []
        self._busy_at = now
        if len(data) > self._limits.config_message_bytes:
            return self._too_big(data, self._limits.config_message_bytes)
        if len(data) > self._limits.message_bytes and not has_few_values(data):
            return self._too_big(data, self._limits.message_bytes)
        try:
            heard = self._talk.out.hear(data.decode("utf-8"))
        except UnicodeDecodeError:
            return self.fail_session(ErrorCode.PROTOCOL_ERROR, CloseCode.NOT_UTF8, "a text message must be UTF-8")
        except FatalRefusal as refusal:
            return self.fail_session(refusal.code, refusal.close_code, refusal.message)
        except Refusal as refusal:
            heard = refusal
        if len(data) > self._limits.message_bytes and not _is_config(heard):
            return self._too_big(data, self._limits.message_bytes)
        events = self._receiver.refuse(heard) if isinstance(heard, Refusal) else self._receiver.handle_all(heard, now)
        self._talk.close_if_ended()
        return events + self._talk.close_if_broken()

    def receive(self, messages: list[ClientMessage], now: float) -> list[Event]:
        """What a client said by another way than a text message, such as an HTTP request."""
        events = self._receiver.handle_all(messages, now)
        self._talk.close_if_ended()
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
        if self._talk.closing or self._talk.broken:
            return self._talk.close_if_broken()
        if len(self._contexts):
            self._busy_at = now
            return self._receiver.end_idle(now)
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
        context.record.expect(segment_samples)
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
        self._talk.done(self._contexts.in_turn(number), reason, seed, usage, metrics)
        self._talk.close_if_ended()

    def failed(self, number: int, code: ErrorCode, message: str, retry_after_ms: int | None = None) -> None:
        """The context ends with an error, at once, whether or not it is its turn."""
        if code not in TERMINAL_CODES:
            raise LocalProtocolError(f"{code} does not end a context")
        self._talk.fail(self._contexts.get(number), code, message, retry_after_ms)
        self._talk.close_if_ended()

    def progress(self, number: int, state: str, now: float, queue_position: int | None = None) -> None:
        """A sign of life of a silent context: queued, generating, waiting_text or waiting_turn."""
        context = self._contexts.get(number)
        context.shown_at = now
        self._out.progress(context, state, queue_position)

    def refuse_reference(self, code: ErrorCode, message: str) -> None:
        """The recording of the last `session.config` cannot be used: contexts that want it fail, one by one."""
        self._out.error(code, message)

    # Ending ---------------------------------------------------------------------------------------------------------

    def wind_down(self, message: str) -> None:
        """The server is about to end: open contexts go on, new ones fail, and the socket closes with the last one."""
        self._talk.wind_down(message)

    def shut_down(self, message: str) -> list[Event]:
        """The server ends: each open context fails with shutting_down, then the socket closes with 1012."""
        return self._talk.shut_down(message)

    def fail_session(self, code: ErrorCode, close_code: CloseCode, message: str) -> list[Event]:
        """A fatal error: open contexts are cancelled, then the socket closes."""
        return self._talk.close_with(code, close_code, message)

    def _too_big(self, data: bytes, limit: int) -> list[Event]:
        message = f"a message of {len(data)} bytes exceeds the limit of {limit}"
        return self.fail_session(ErrorCode.MESSAGE_TOO_BIG, CloseCode.TOO_BIG, message)


def _is_config(heard: list[ClientMessage] | Refusal) -> bool:
    return not isinstance(heard, Refusal) and all(isinstance(message, Config) for message in heard)
