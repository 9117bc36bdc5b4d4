"""What can go wrong for a client: one class for each group of codes, each with `code` and `message`."""

from __future__ import annotations

UNREACHABLE = "unreachable"
CONNECTION_LOST = "connection_lost"


class SpeechError(Exception):
    """Base of all.  `code`: of the wire where the server gave one.  `retry_after_ms`: when to try again, if it said."""

    def __init__(self, code: str, message: str, retry_after_ms: float | None = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code, self.message, self.retry_after_ms = str(code), message, retry_after_ms


class ConnectError(SpeechError):
    """No connection: `unreachable`, or the code of the server's refusal, such as `unauthorized` or `overloaded`."""


class ConnectionLost(SpeechError):
    """The connection ended while it was needed: `connection_lost`, or the code of the server's fatal error."""


class RefusedError(SpeechError):
    """The server refused what it was asked for, such as `unknown_voice` or `bad_value`."""


class ContextFailed(SpeechError):
    """The server ended the context, such as `overloaded`, `stage_timeout` or `engine_failed`."""


class ContextEnded(SpeechError):
    """The context takes no more input: `context_ended`."""


class ProtocolViolation(SpeechError):
    """The server sent what the protocol does not allow: `protocol_error`.  The connection is given up."""
