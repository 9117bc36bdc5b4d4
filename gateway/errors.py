"""One table from exception to what the client is told."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from gateway.engine.stream import EngineError
from gateway.voices.recording_rules import BadRecording
from protocol.codes import ErrorCode

log = logging.getLogger(__name__)


class Overloaded(Exception):
    """The server has no room for this now."""


class TooManyContexts(Exception):
    """The owner of the API key has as many contexts open as a key may have."""


@dataclass(frozen=True, slots=True)
class ClientError:
    """The terminal `error` of a context.  `retry`: it may work a little later."""

    code: ErrorCode
    message: str
    retry: bool = False


class BadReference(Exception):
    """The recording of the session did not become a voice; it was `told` before."""

    def __init__(self, told: ClientError) -> None:
        super().__init__(told.message)
        self.told = told


def client_error(error: BaseException) -> ClientError:
    """What a client may know of an exception (of a group: of its first); what we did not foresee is logged in full."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, Overloaded):
        return ClientError(ErrorCode.OVERLOADED, str(error), retry=True)
    if isinstance(error, TooManyContexts):
        return ClientError(ErrorCode.TOO_MANY_CONTEXTS, str(error))
    if isinstance(error, BadReference):
        return error.told
    if isinstance(error, BadRecording):
        return ClientError(ErrorCode.BAD_VALUE, f"ref_audio: {error}")
    if isinstance(error, EngineError):
        return ClientError(ErrorCode(error.code), error.message, error.retry)
    log.error("unforeseen error", exc_info=error)
    return ClientError(ErrorCode.INTERNAL, "an internal error ended the context")
