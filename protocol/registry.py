"""The contexts of a connection: which are open, whose turn it is, and which ids are used up."""

from __future__ import annotations

from collections import OrderedDict

from protocol.codes import ErrorCode, LocalProtocolError, Refusal
from protocol.config import SessionConfig
from protocol.context import Context
from protocol.messages import MessageType


class AlreadyRefused(Refusal):
    """The id's one `context_ended` was said before: this message is dropped in silence."""

    def __init__(self, context_id: str) -> None:
        super().__init__(ErrorCode.CONTEXT_ENDED, f"{context_id} takes no more input", context_id)


class Registry:
    """Contexts by number, in opening order, and by the client's id (None: the unnamed one that takes text)."""

    def __init__(self, remembered: int) -> None:
        self._remembered = remembered
        self._open: dict[int, Context] = {}
        self._by_id: dict[str | None, Context] = {}
        self._ended: OrderedDict[str, bool] = OrderedDict()  # id -> context_ended was said
        self._openings = 0

    def __len__(self) -> int:
        return len(self._open)

    @property
    def all(self) -> tuple[Context, ...]:
        """Open and draining ones, in opening order."""
        return tuple(self._open.values())

    @property
    def front(self) -> int | None:
        """The number of the oldest that has not ended: it is its turn to send audio."""
        return next(iter(self._open), None)

    def get(self, number: int) -> Context:
        """Raises LocalProtocolError if the context is not open."""
        if number not in self._open:
            raise LocalProtocolError(f"context {number} is not open")
        return self._open[number]

    def in_turn(self, number: int) -> Context:
        """Raises LocalProtocolError unless it is the context's turn."""
        context = self.get(number)
        if number != self.front:
            raise LocalProtocolError(f"context {number} must wait for context {self.front}")
        return context

    def named(self, client_id: str) -> Context | None:
        """The open or draining context of that id."""
        return self._by_id.get(client_id)

    def taking(self, client_id: str | None, kind: MessageType) -> Context | None:
        """The context that takes a message of this kind; None if the id is new.  Raises Refusal if it is used up."""
        context = self._by_id.get(client_id)
        if context is not None and context.accepts(kind):
            return context
        if client_id is None or (context is None and client_id not in self._ended):
            return None
        raise self._late(client_id, context)

    def add(self, client_id: str | None, config: SessionConfig, now: float) -> Context:
        """Open a context; the caller has made sure that the id is new."""
        context = Context(self._openings, client_id, config, now)
        self._openings += 1
        self._open[context.number] = context
        self._by_id[client_id] = context
        return context

    def close_input(self, context: Context) -> None:
        """No more text: an unnamed context makes way for the next one."""
        context.take(MessageType.DONE)
        if context.client_id is None:
            del self._by_id[None]

    def remove(self, context: Context) -> None:
        """Forget an ended context, but for its id."""
        del self._open[context.number]
        if self._by_id.get(context.client_id) is context:
            del self._by_id[context.client_id]
        if context.client_id is not None:
            self._ended[context.client_id] = context.refused
            if len(self._ended) > self._remembered:
                self._ended.popitem(last=False)

    def _late(self, client_id: str, context: Context | None) -> Refusal:
        said = self._ended[client_id] if context is None else context.refused
        if said:
            return AlreadyRefused(client_id)
        if context is None:
            self._ended[client_id] = True
        else:
            context.refused = True
        return Refusal(ErrorCode.CONTEXT_ENDED, f"{client_id} takes no more input", client_id)
