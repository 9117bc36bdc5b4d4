"""Why a request is not served, and how that is told over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

import orjson
from aiohttp import web

from protocol.codes import ErrorCode

ERROR_CODE = web.ResponseKey("error code", ErrorCode)  # of a refusal, for whoever counts them


@dataclass(frozen=True, slots=True)
class Denial:
    """A request that is not served.  `retry_after_s`: it may be, so much later.  `headers`: of the answer."""

    status: HTTPStatus
    code: ErrorCode
    message: str
    retry_after_s: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def answer(self, body: object) -> web.Response:
        """With this JSON for a body."""
        headers = dict(self.headers)
        if self.retry_after_s is not None:
            headers["Retry-After"] = str(self.retry_after_s)
        data = orjson.dumps(body)
        response = web.Response(status=self.status, body=data, content_type="application/json", headers=headers)
        response[ERROR_CODE] = self.code
        return response


def refusal(denial: Denial) -> web.Response:
    """An HTTP answer whose JSON body is the wire's `error`."""
    body = {"type": "error", "code": denial.code, "message": denial.message, "fatal": True}
    if denial.retry_after_s is not None:
        body["retry_after_ms"] = denial.retry_after_s * 1000
    return denial.answer(body)
