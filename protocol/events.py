"""What a received message, or the passing of time, means for the program that uses the session."""

from __future__ import annotations

from dataclasses import dataclass

from protocol.config import SessionConfig
from protocol.reference import GivenReference


@dataclass(frozen=True, slots=True)
class ContextOpened:
    """A new context; `config` is locked for it and holds the overrides of its first text."""

    number: int
    context_id: str
    config: SessionConfig


@dataclass(frozen=True, slots=True)
class TextReceived:
    """Append to the context's text, verbatim."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class FlushRequested:
    """Speak all that is buffered, then call `flushed`."""

    number: int


@dataclass(frozen=True, slots=True)
class InputEnded:
    """No more text comes: drain, then call `done`.  `reason`: done (the client said so) or idle (it fell silent)."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class ContextCancelled:
    """The context has ended and its fence is queued: drop all that belongs to it, send nothing of it any more."""

    number: int


@dataclass(frozen=True, slots=True)
class ReferenceGiven:
    """Contexts that open from now on are spoken in the voice of this recording.  Look at it now: if it cannot be used,
    call `refuse_reference`, and let those contexts fail with `bad_value`."""

    reference: GivenReference


Event = ContextOpened | TextReceived | FlushRequested | InputEnded | ContextCancelled | ReferenceGiven
