"""The side of a server's session that hears the client: what each of its messages does to the contexts."""

from __future__ import annotations

from typing import ClassVar

from protocol.codes import OPENING_CODES, ErrorCode, Refusal
from protocol.config import ConfigRules, SessionConfig
from protocol.context import Context, Input
from protocol.conversation import Conversation
from protocol.events import ContextOpened, Event, FlushRequested, InputEnded, ReferenceGiven, TextReceived
from protocol.limits import Limits
from protocol.messages import Cancel, ClientMessage, Close, Config, Done, Finish, Flush, MessageType, Ping, Text
from protocol.registry import AlreadyRefused


class Receiver:
    """`config`: what the next context is opened with."""

    def __init__(self, talk: Conversation, rules: ConfigRules, limits: Limits) -> None:
        self.config: SessionConfig = rules.defaults
        self._talk, self._contexts, self._out = talk, talk.contexts, talk.out
        self._rules, self._limits = rules, limits

    def handle_all(self, messages: list[ClientMessage], now: float) -> list[Event]:
        """Do what they ask for, one after the other."""
        return [event for message in messages for event in self.handle(message, now)]

    def handle(self, message: ClientMessage, now: float) -> list[Event]:
        """Do what the message asks for, or say why not."""
        try:
            return self._HANDLERS[type(message)](self, message, now)
        except AlreadyRefused:
            return []
        except Refusal as refusal:
            return self.refuse(refusal)

    def refuse(self, refusal: Refusal) -> list[Event]:
        """Say that a message was not accepted -> no events."""
        self._out.error(refusal.code, refusal.message, about_context_id=refusal.context_id)
        return []

    def end_idle(self, now: float) -> list[Event]:
        """End the input of contexts whose client has fallen silent."""
        idle = [context for context in self._contexts.all if self._is_idle(context, now)]
        for context in idle:
            self._out.fell_silent(context)
        return [event for context in idle for event in self._end_input(context, "idle")]

    # One method for each message ------------------------------------------------------------------------------------

    def _on_config(self, message: Config, _: float) -> list[Event]:
        if len(self._contexts):
            names = ", ".join(context.name for context in self._contexts.all)
            raise Refusal(ErrorCode.CONFIG_LOCKED, f"the config is locked until the open contexts have ended: {names}")
        self.config, given = self._rules.apply_all(self.config, message.changes)
        self._out.configured(self.config)
        return [] if given is None else [ReferenceGiven(given)]

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
            return self._talk.cancel_all()
        context = self._contexts.named(message.context_id)
        return [] if context is None else [self._talk.cancel(context, message.playback_offset_ms)]

    def _on_ping(self, message: Ping, now: float) -> list[Event]:
        context = None if message.context_id is None else self._contexts.named(message.context_id)
        if context is not None:
            context.heard_of = now
        self._out.pong(message.id)
        return []

    def _on_close(self, _: Close, __: float) -> list[Event]:
        return self._talk.close()

    def _on_finish(self, _: Finish, __: float) -> list[Event]:
        self._talk.finished = True
        open_ones = [context for context in self._contexts.all if context.input is Input.OPEN]
        return [event for context in open_ones for event in self._end_input(context)]

    _HANDLERS: ClassVar = {
        Config: _on_config,
        Text: _on_text,
        Flush: _on_flush,
        Done: _on_done,
        Cancel: _on_cancel,
        Ping: _on_ping,
        Close: _on_close,
        Finish: _on_finish,
    }

    # Contexts -------------------------------------------------------------------------------------------------------

    def _open(self, client_id: str | None, config: SessionConfig, now: float, text: str) -> list[Event]:
        if self._talk.finished:
            raise Refusal(ErrorCode.CONTEXT_ENDED, "no more input is taken: the client has said that it is over")
        if self._talk.ending is not None:
            return self._stillborn(client_id, Refusal(ErrorCode.SHUTTING_DOWN, self._talk.ending), now)
        if len(self._contexts) >= self._limits.contexts:
            message = f"{self._limits.contexts} contexts are open, which is the limit of a connection"
            return self._stillborn(client_id, Refusal(ErrorCode.TOO_MANY_CONTEXTS, message), now)
        try:
            self._rules.check_voice(config)  # it may have been deleted since it was chosen
        except Refusal as refusal:
            return self._stillborn(client_id, refusal, now)
        context = self._contexts.add(client_id, config, now)
        return [ContextOpened(context.number, context.name, config), *self._append(context, text)]

    def _stillborn(self, client_id: str | None, refusal: Refusal, now: float) -> list[Event]:
        """A context that opens and ends at once, with an error: the caller need not know of it."""
        self._talk.fail(self._contexts.add(client_id, self.config, now), refusal.code, refusal.message)
        return []

    def _append(self, context: Context, text: str, complete: bool = False) -> list[Event]:
        whole = context.append(text, complete)
        return [TextReceived(context.number, whole)] if whole else []

    def _end_input(self, context: Context, reason: str = "done") -> list[Event]:
        self._contexts.close_input(context)
        return [*self._append(context, "", complete=True), InputEnded(context.number, reason)]

    def _is_idle(self, context: Context, now: float) -> bool:
        return context.input is Input.OPEN and now - context.heard_of >= self._limits.context_idle_s

    def _check_room(self, context: Context | None, message: Text) -> None:
        buffered, room = context.buffered if context else 0, self._limits.text_characters
        if buffered + len(message.text) > room:
            sizes = f"{len(message.text)} characters and {buffered} buffered ones"
            text = f"{sizes} exceed the limit of {room}; nothing was appended"
            raise Refusal(ErrorCode.TEXT_TOO_LONG, text, message.context_id)
