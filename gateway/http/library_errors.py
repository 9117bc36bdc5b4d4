"""What the HTTP library refuses by itself, in the words of whoever's address was asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

from aiohttp import web

from gateway.http.refusals import Denial, refusal
from protocol.codes import ErrorCode

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Refuse = Callable[[Denial], web.Response]


def json_errors(words: Mapping[str, Refuse]) -> Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]:
    """A middleware.  `words`: of paths that begin so; all others are told in the words of our own wire."""

    def refuse(request: web.Request, denial: Denial) -> web.Response:
        named = (said for start, said in words.items() if request.path.startswith(start))
        return next(named, refusal)(denial)

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPNotFound:
            message = f"there is nothing at {request.path}"
            return refuse(request, Denial(HTTPStatus.NOT_FOUND, ErrorCode.NOT_FOUND, message))
        except web.HTTPMethodNotAllowed as error:
            allowed = ", ".join(sorted(error.allowed_methods))
            message = f"{request.path} is not for {request.method}; allowed: {allowed}"
            status, headers = HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": allowed}
            return refuse(request, Denial(status, ErrorCode.NOT_FOUND, message, headers=headers))
        except web.HTTPBadRequest as error:
            denial = Denial(HTTPStatus.BAD_REQUEST, ErrorCode.PROTOCOL_ERROR, error.text or error.reason)
            return refuse(request, denial)

    return middleware
