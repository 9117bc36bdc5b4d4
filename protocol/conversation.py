"""What the two sides of a server's session share: its open contexts, the frames that wait, and how all of it ends."""

from __future__ import annotations

from dataclasses import dataclass

from protocol.codes import CloseCode, ErrorCode
from protocol.context import Context, Output
from protocol.dialect import Dialect
from protocol.events import ContextCancelled, Event
from protocol.limits import Limits
from protocol.messages import Metrics, Usage
from protocol.registry import Registry


@dataclass(frozen=True, slots=True)
class Closing:
    """Send all frames, then close the socket with this."""

    code: CloseCode
    reason: str


class Conversation:
    """Each context ends in one of three ways, `done`, `fail` or `cancel`, and says one terminal message in it.

    `closing`: set once the connection is to be closed.  `ending`: why the server takes no more contexts, once it does
    not.  `finished`: the client has said all.  `broken`: what a context has failed with, if that ends all.
    """

    def __init__(self, limits: Limits, dialect: Dialect) -> None:
        self.contexts = Registry(limits.remembered_ids)
        self.out = dialect
        self.closing: Closing | None = None
        self.ending: str | None = None
        self.finished = False
        self.broken: tuple[ErrorCode, str] | None = None

    # A context ------------------------------------------------------------------------------------------------------

    def done(self, context: Context, reason: str, seed: int, usage: Usage, metrics: Metrics) -> None:
        """All of it is sent.  Raises LocalProtocolError if something is still owed to the client."""
        context.check_drained()
        self._audio_done(context, None)
        context.send("session.done")
        self.out.session_done(context, reason, seed, usage, metrics)
        self.contexts.remove(context)

    def fail(self, context: Context, code: ErrorCode, message: str, retry_after_ms: int | None = None) -> None:
        """An error ends it at once."""
        self._audio_done(context, code)
        context.send("error")
        self.out.error(code, message, context_id=context.name, retry_after_ms=retry_after_ms)
        self.contexts.remove(context)
        if self.out.failure_ends_all and code is not ErrorCode.SHUTTING_DOWN:  # that closes with the last context
            self.broken = code, message

    def cancel(self, context: Context, offset_ms: float | None) -> Event:
        """The client wants no more of it, and has heard it up to `offset_ms`, as far as it says so."""
        context.append("", complete=True)
        context.send("input.cancelled")
        self.out.cancelled(context, *context.record.split(offset_ms))
        self.contexts.remove(context)
        return ContextCancelled(context.number)

    def cancel_all(self) -> list[Event]:
        """In opening order."""
        return [self.cancel(context, None) for context in self.contexts.all]

    def _audio_done(self, context: Context, error: ErrorCode | None) -> None:
        if context.output is not Output.SILENT:
            context.send("audio.done")
            self.out.audio_done(context, error)

    # The connection -------------------------------------------------------------------------------------------------

    def close(self) -> list[Event]:
        """As the client asked for."""
        events = self.cancel_all()
        self.closing = Closing(CloseCode.NORMAL, "")
        return events

    def close_with(self, code: ErrorCode, close_code: CloseCode, message: str) -> list[Event]:
        """A fatal error: open contexts are cancelled, then the socket closes."""
        if self.closing:
            return []
        events = self.cancel_all()
        self.out.error(code, message, fatal=True)
        self.closing = Closing(close_code, self.out.closing_reason(code, message))
        return events

    def close_if_broken(self) -> list[Event]:
        """Close if a context has failed, and the connection ends with it."""
        return self.close_with(self.broken[0], CloseCode.INTERNAL, self.broken[1]) if self.broken else []

    def wind_down(self, message: str) -> None:
        """The server is about to end: the connection closes with its last context."""
        self.ending = message
        self.close_if_ended()

    def shut_down(self, message: str) -> list[Event]:
        """The server ends: what is open fails."""
        contexts = self.contexts.all
        for context in contexts:
            self.fail(context, ErrorCode.SHUTTING_DOWN, message)
        self.wind_down(message)
        return [ContextCancelled(context.number) for context in contexts]

    def close_if_ended(self) -> None:
        """Close if either side takes or gives no more, and no context is open."""
        if len(self.contexts) or self.closing:
            return
        if self.broken:
            self.close_if_broken()
        elif self.finished:
            self.closing = Closing(CloseCode.NORMAL, "")
        elif self.ending is not None:
            self.close_with(ErrorCode.SHUTTING_DOWN, CloseCode.RESTART, self.ending)
