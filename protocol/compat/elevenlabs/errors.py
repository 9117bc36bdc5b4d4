"""Errors as ElevenLabs' clients know them: on the socket, and in the body of an HTTP answer."""

from __future__ import annotations

from protocol.codes import CloseCode, ErrorCode

MOST_REASON_BYTES = 123  # of a close frame (RFC 6455, section 5.5)

_NAMES = {
    ErrorCode.IDLE_TIMEOUT: "input_timeout_exceeded",
    ErrorCode.TOO_MANY_CONTEXTS: "max_active_conversations",
    ErrorCode.UNAUTHORIZED: "invalid_api_key",
    ErrorCode.UNKNOWN_VOICE: "voice_id_does_not_exist",
}
_CLOSES = {
    ErrorCode.ENGINE_FAILED: CloseCode.INTERNAL,
    ErrorCode.INTERNAL: CloseCode.INTERNAL,
    ErrorCode.MESSAGE_TOO_BIG: CloseCode.TOO_BIG,
    ErrorCode.SHUTTING_DOWN: CloseCode.RESTART,
    ErrorCode.STAGE_TIMEOUT: CloseCode.INTERNAL,
}


def error_name(code: ErrorCode) -> str:
    """Theirs where they have one, else ours."""
    return _NAMES.get(code, code)


def error_message(code: ErrorCode, message: str) -> dict[str, object]:
    """What the socket tells: nearly all of their errors have the code 1008."""
    return {"message": message, "error": error_name(code), "code": int(_CLOSES.get(code, CloseCode.POLICY))}


def error_detail(code: ErrorCode, message: str) -> dict[str, object]:
    """The body of an HTTP answer."""
    status = "voice_not_found" if code is ErrorCode.UNKNOWN_VOICE else error_name(code)
    return {"detail": {"status": status, "message": message}}


def close_reason(message: str) -> str:
    """A message as far as a close frame can hold it."""
    return message.encode()[:MOST_REASON_BYTES].decode(errors="ignore")
