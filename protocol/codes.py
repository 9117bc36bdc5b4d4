"""Error and close codes of the wire, and the exceptions that carry them."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class ErrorCode(StrEnum):
    """`code` of an `error` message, and of the JSON body of an HTTP refusal."""

    BAD_JSON = "bad_json"
    BAD_MESSAGE = "bad_message"
    UNKNOWN_TYPE = "unknown_type"
    UNKNOWN_FIELD = "unknown_field"
    BAD_VALUE = "bad_value"
    CONFIG_LOCKED = "config_locked"
    UNKNOWN_VOICE = "unknown_voice"
    TEXT_TOO_LONG = "text_too_long"
    TOO_MANY_CONTEXTS = "too_many_contexts"
    CONTEXT_ENDED = "context_ended"
    MESSAGE_TOO_BIG = "message_too_big"
    PROTOCOL_ERROR = "protocol_error"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN_ORIGIN = "forbidden_origin"
    NOT_FOUND = "not_found"
    UPGRADE_REQUIRED = "upgrade_required"
    OVERLOADED = "overloaded"
    RATE_LIMITED = "rate_limited"
    IDLE_TIMEOUT = "idle_timeout"
    SLOW_CONSUMER = "slow_consumer"
    STAGE_TIMEOUT = "stage_timeout"
    ENGINE_FAILED = "engine_failed"
    SHUTTING_DOWN = "shutting_down"
    INTERNAL = "internal"


TERMINAL_CODES = frozenset(
    {
        ErrorCode.TOO_MANY_CONTEXTS,
        ErrorCode.BAD_VALUE,
        ErrorCode.OVERLOADED,
        ErrorCode.STAGE_TIMEOUT,
        ErrorCode.ENGINE_FAILED,
        ErrorCode.SHUTTING_DOWN,
        ErrorCode.INTERNAL,
    }
)
"""Codes that end a context which is open; the opening itself may also fail, see OPENING_CODES."""

OPENING_CODES = frozenset({ErrorCode.TOO_MANY_CONTEXTS, ErrorCode.UNKNOWN_VOICE})
"""Codes that end a context in the moment of its opening."""


class CloseCode(IntEnum):
    """WebSocket close codes (RFC 6455, section 7.4.1, and the IANA registry)."""

    NORMAL = 1000
    BINARY_INPUT = 1003
    NOT_UTF8 = 1007
    POLICY = 1008
    TOO_BIG = 1009
    INTERNAL = 1011
    RESTART = 1012


class Refusal(Exception):
    """A message of the client is refused and changes nothing.  `context_id`: whom it was about, if that is known."""

    def __init__(self, code: ErrorCode, message: str, context_id: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.context_id = code, message, context_id


class FatalRefusal(Refusal):
    """A message of the client after which nothing can go on: the socket closes with `close_code`."""

    def __init__(self, code: ErrorCode, close_code: CloseCode, message: str) -> None:
        super().__init__(code, message)
        self.close_code = close_code


class LocalProtocolError(Exception):
    """The program that uses the session would break the order on the wire: a bug on this side, never the client's."""
