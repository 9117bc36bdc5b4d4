"""How Deepgram's clients are told that a request is not served."""

from __future__ import annotations

import uuid

from aiohttp import web

from gateway.http.refusals import Denial
from protocol.codes import ErrorCode

_ERR_CODES = {
    ErrorCode.UNAUTHORIZED: "INVALID_AUTH",
    ErrorCode.FORBIDDEN_ORIGIN: "INSUFFICIENT_PERMISSIONS",
    ErrorCode.RATE_LIMITED: "TOO_MANY_REQUESTS",
    ErrorCode.TOO_MANY_CONTEXTS: "TOO_MANY_REQUESTS",
    ErrorCode.MESSAGE_TOO_BIG: "PAYLOAD_TOO_LARGE",
    ErrorCode.BAD_VALUE: "INVALID_QUERY_PARAMETER",
    ErrorCode.UNKNOWN_FIELD: "INVALID_QUERY_PARAMETER",
    ErrorCode.UNKNOWN_VOICE: "INVALID_QUERY_PARAMETER",
}  # else our own, in their letters


def deepgram_refusal(denial: Denial) -> web.Response:
    """A refusal in Deepgram's words.  Of one that comes before an upgrade, clients show the headers."""
    request_id = str(uuid.uuid4())
    err_code = _ERR_CODES.get(denial.code, denial.code.upper())
    response = denial.answer({"err_code": err_code, "err_msg": denial.message, "request_id": request_id})
    response.headers["dg-error"] = denial.message.encode("ascii", "replace").decode()
    response.headers["dg-request-id"] = request_id
    return response
