"""HTTP requests that are answered by speech: from the request to a running one, or a refusal."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Protocol

from aiohttp import web

from gateway.http.gatekeeper import Gatekeeper
from gateway.http.refusals import Denial
from gateway.http.running import Running
from gateway.http.speech_request import Asked, SpeechRequest
from gateway.service import Service, config_rules, hello
from protocol.codes import ErrorCode, Refusal
from protocol.compat.answer import Failure
from protocol.config import ConfigRules
from protocol.session import ServerSession

log = logging.getLogger(__name__)

_BODY_S = 30.0  # for the whole body of a request
_STATUS = {
    ErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.IDLE_TIMEOUT: HTTPStatus.REQUEST_TIMEOUT,
    ErrorCode.MESSAGE_TOO_BIG: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ErrorCode.TOO_MANY_CONTEXTS: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorCode.RATE_LIMITED: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorCode.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
    ErrorCode.OVERLOADED: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.STAGE_TIMEOUT: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.ENGINE_FAILED: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.SHUTTING_DOWN: HTTPStatus.SERVICE_UNAVAILABLE,
}  # else 400
_LATER = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS)


class SpeechApi(Protocol):
    """One API in which a request is answered by speech."""

    def read(self, request: web.Request, body: bytes, rules: ConfigRules) -> Asked:
        """What the request asks for.  Raises Refusal."""

    def refuse(self, denial: Denial) -> web.Response:
        """The answer to a request that gets no speech, as clients of this API expect it."""


class SpeechEndpoint:
    """Lets requests in, and counts them among what is `running`: each as a connection with one context."""

    def __init__(self, service: Service, gatekeeper: Gatekeeper, running: Running) -> None:
        self._service, self._gatekeeper, self._running = service, gatekeeper, running

    def of(self, api: SpeechApi) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """The handler of requests to this API."""

        async def handle(request: web.Request) -> web.StreamResponse:
            asked = await self._ask(request, api)
            answer = asked if isinstance(asked, Denial) else await self._speak(request, asked)
            return api.refuse(answer) if isinstance(answer, Denial) else answer

        return handle

    async def _ask(self, request: web.Request, api: SpeechApi) -> Asked | Denial:
        owner = self._gatekeeper.owner(request)
        denial = self._gatekeeper.denial(request) or self._gatekeeper.no_room(owner)
        if denial is not None:
            return denial
        try:
            body = await read_body(request, self._service.settings.limits.config_message_bytes)
            asked = api.read(request, body, self._rules())
        except Refusal as refused:
            return self._denial(refused.code, refused.message)
        return self._gatekeeper.no_room(owner) or asked  # others may have come while the body did

    async def _speak(self, request: web.Request, asked: Asked) -> web.StreamResponse | Denial:
        service, name = self._service, secrets.token_hex(8)
        owner = self._gatekeeper.owner(request)
        log.info("request connection=%s path=%s peer=%s key=%s", name, request.path, request.remote, owner or "-")
        rules = replace(self._rules(), defaults=asked.config)
        introduction = hello(service.engine.info, service.voices, service.settings, name)
        session = ServerSession(introduction, rules, service.settings.limits, service.clock(), asked.answer)
        share = service.admission.share(owner)
        made = await self._running.serve(SpeechRequest(request, asked, session, service, share, name), share)
        return self._denial(made.code, made.message) if isinstance(made, Failure) else made

    def _rules(self) -> ConfigRules:
        return config_rules(self._service.engine.info, self._service.voices, self._service.settings)

    def _denial(self, code: ErrorCode, message: str) -> Denial:
        status = _STATUS.get(code, HTTPStatus.BAD_REQUEST)
        later = max(1, self._service.settings.retry_after_ms // 1000) if status in _LATER else None
        return Denial(status, code, message, later)


async def read_body(request: web.Request, most: int) -> bytes:
    """The body of a request, of at most so many bytes.  Raises Refusal."""
    message = f"the body of a request must have at most {most} bytes"
    if (request.content_length or 0) > most:
        raise Refusal(ErrorCode.MESSAGE_TOO_BIG, message)
    data = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
            async for piece in request.content.iter_any():
                data += piece
                if len(data) > most:
                    raise Refusal(ErrorCode.MESSAGE_TOO_BIG, message)
    except TimeoutError:
        raise Refusal(ErrorCode.IDLE_TIMEOUT, f"the body of the request took longer than {_BODY_S:g} s") from None
    return bytes(data)
