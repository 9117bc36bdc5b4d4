"""What a client may say, as frozen dataclasses, and what the server says of itself and of a finished context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from protocol.codes import ErrorCode

PROTOCOL_VERSION = 1
SUBPROTOCOL = "audio8.v1"


class MessageType(StrEnum):
    """`type` of the client's messages."""

    CONFIG = "session.config"
    TEXT = "input.text"
    FLUSH = "input.flush"
    DONE = "input.done"
    CANCEL = "input.cancel"
    PING = "session.ping"
    CLOSE = "session.close"


# Client -> server ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Config:
    """`session.config`: the keys that it names, unchecked."""

    changes: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Text:
    """`input.text`.  `overrides`: those of `voice`, `seed`, `language` that were given, unchecked."""

    text: str
    context_id: str | None = None
    overrides: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Flush:
    """`input.flush`."""

    context_id: str | None = None
    flush_id: str | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """`input.done`."""

    context_id: str | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """`input.cancel`.  Without an id: every open context."""

    context_id: str | None = None
    playback_offset_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Ping:
    """`session.ping`."""

    id: str | None = None
    context_id: str | None = None


@dataclass(frozen=True, slots=True)
class Close:
    """`session.close`."""


@dataclass(frozen=True, slots=True)
class Finish:
    """No more input: what is open is spoken to its end, then the socket closes.  Only other dialects can say it."""


ClientMessage = Config | Text | Flush | Done | Cancel | Ping | Close | Finish


# Server -> client ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Voice:
    """A named voice, as listed in `session.ready`."""

    name: str
    language: str
    description: str


@dataclass(frozen=True, slots=True)
class Hello:
    """What `session.ready` says of the server.  `prebuffer_ms`: a hint for players, how much to hold before playing."""

    session_id: str
    model: str
    voices: tuple[Voice, ...]
    sample_rate: int
    frame_samples: int
    prebuffer_ms: int


@dataclass(frozen=True, slots=True)
class Usage:
    """`usage` of `session.done`."""

    input_characters: int
    input_tokens: int
    audio_frames: int
    audio_ms: float


@dataclass(frozen=True, slots=True)
class Metrics:
    """`metrics` of `session.done`; None where nothing was synthesised."""

    ttfp_ms: float | None
    rtf: float | None
    queue_ms: float | None


@dataclass(frozen=True, slots=True)
class Frame:
    """One WebSocket message to send: binary audio, or the UTF-8 of a JSON text.  `error`: the code that it tells."""

    data: bytes
    binary: bool
    error: ErrorCode | None = None
