"""`GET /v1/stream`: from the HTTP request to a running connection, or a refusal before the upgrade."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from http import HTTPStatus

import orjson
from aiohttp import HttpVersion11, hdrs, web

from gateway.admission import Share
from gateway.http.masking import MaskCheck
from gateway.http.origin import OriginPolicy
from gateway.keys import offered_key
from gateway.service import Service, config_rules, hello
from gateway.session.client_socket import ClientSocket
from gateway.session.connection import Connection
from protocol.codes import ErrorCode
from protocol.messages import SUBPROTOCOL
from protocol.session import ServerSession

log = logging.getLogger(__name__)

_ENDS = "the server is shutting down"

ERROR_CODE = web.ResponseKey("error code", ErrorCode)  # of a refusal, for whoever counts them


def refusal(status: HTTPStatus, code: ErrorCode, message: str, retry_after_s: int | None = None) -> web.Response:
    """An HTTP answer whose JSON body is the wire's `error`."""
    body = {"type": "error", "code": code, "message": message, "fatal": True}
    headers = {}
    if retry_after_s is not None:
        body["retry_after_ms"] = retry_after_s * 1000
        headers["Retry-After"] = str(retry_after_s)
    response = web.Response(status=status, body=orjson.dumps(body), content_type="application/json", headers=headers)
    response[ERROR_CODE] = code
    return response


class StreamEndpoint:
    """Knows the open connections; `wind_down`, then `shut_down`, end them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._origins = OriginPolicy(service.settings.allowed_origins, service.settings.allowed_hosts)
        self._connections: set[Connection] = set()
        self._all_over = asyncio.Event()
        self._all_over.set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Upgrade and serve one connection to its end."""
        response = self._refusal(request)
        if response is not None:
            return response
        name, settings = secrets.token_hex(8), self._service.settings
        websocket = ClientSocket(
            protocols=(SUBPROTOCOL,),
            compress=False,
            autoping=False,
            decode_text=False,  # the session tells text that is not UTF-8 in its own words
            max_msg_size=settings.limits.config_message_bytes,
            writer_limit=0,  # with the transport's limit below: sending returns when the kernel has taken the message
            timeout=settings.close_s,
        )
        try:
            if websocket.can_prepare(request):  # else what follows on this connection is HTTP
                _check_masks(request)
            await websocket.prepare(request)
            transport = _bounded(request.transport, settings.send_buffer_bytes)
        except ConnectionError:  # the client has left in the middle of the handshake: nobody is left to be answered
            return websocket if websocket.prepared else web.Response()
        info, voices = self._service.engine.info, self._service.voices
        rules = config_rules(info, voices, settings)
        session = ServerSession(hello(info, voices, settings, name), rules, settings.limits, self._service.clock())
        owner = self.owner(request)
        log.info("connection open connection=%s peer=%s key=%s", name, request.remote, owner or "-")
        share = self._service.admission.share(owner)
        await self._serve(Connection(websocket, transport, session, self._service, share, name), share)
        return websocket

    @property
    def connections(self) -> tuple[Connection, ...]:
        """Those that are open."""
        return tuple(self._connections)

    async def wind_down(self, grace_s: float) -> None:
        """Nothing new begins, and what has begun may end; returns when all is over, at the latest after `grace_s`."""
        self._service.admission.is_over = True
        for connection in self._connections:
            connection.wind_down(_ENDS)
        await self._all_over_within(grace_s)

    async def shut_down(self) -> None:
        """End all connections; returns when they are over.  One that does not answer the close in time is cut off."""
        self._service.admission.is_over = True
        for connection in self._connections:
            connection.shut_down(_ENDS)
        if not await self._all_over_within(self._service.settings.close_s):
            log.warning("connections that do not end: %d", len(self._connections))
            for connection in self._connections:
                connection.abort()

    async def _all_over_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._all_over.wait()
        except TimeoutError:
            return False
        return True

    async def _serve(self, connection: Connection, share: Share) -> None:
        admission = self._service.admission
        admission.connections += 1
        share.connections += 1
        self._service.metrics.connection_opened()
        self._connections.add(connection)
        self._all_over.clear()
        if admission.is_over:  # since the handshake began
            connection.wind_down(_ENDS)
        try:
            await connection.run()
        finally:
            admission.connections -= 1
            share.connections -= 1
            self._connections.discard(connection)
            if not self._connections:
                self._all_over.set()

    def denial(self, request: web.Request) -> web.Response | None:
        """Why whoever asks may have nothing but pages and health: a foreign page, no key; None if it may."""
        local = request.transport.get_extra_info("sockname") if request.transport else None
        why = self._origins.refusal(request.headers.get("Origin"), request.host, local[0] if local else "")
        if why is not None:
            return refusal(HTTPStatus.FORBIDDEN, ErrorCode.FORBIDDEN_ORIGIN, why)
        if self._service.settings.keys is not None and self.owner(request) is None:
            response = refusal(HTTPStatus.UNAUTHORIZED, ErrorCode.UNAUTHORIZED, "a valid API key is needed")
            response.headers["WWW-Authenticate"] = "Bearer"
            return response
        return None

    def _refusal(self, request: web.Request) -> web.Response | None:
        """Why there is no upgrade, None if there is one."""
        denied = self.denial(request)
        if denied is not None:
            return denied
        is_get = request.method == hdrs.METH_GET and request.version >= HttpVersion11  # RFC 6455, section 4.2.1
        if not is_get or request.headers.get("Upgrade", "").lower() != "websocket":
            response = refusal(HTTPStatus.UPGRADE_REQUIRED, ErrorCode.UPGRADE_REQUIRED, "this is a WebSocket endpoint")
            response.headers["Upgrade"] = "websocket"
            return response
        return self._no_room(self.owner(request))

    def owner(self, request: web.Request) -> str | None:
        """The name of the key that the request carries, None if it carries none of ours."""
        keys = self._service.settings.keys
        return keys.owner(offered_key(request.headers, request.query)) if keys is not None else None

    def _no_room(self, owner: str | None) -> web.Response | None:
        limits, retry_s = self._service.settings.limits, max(1, self._service.settings.retry_after_ms // 1000)
        status = HTTPStatus.SERVICE_UNAVAILABLE
        if self._service.admission.is_over:
            return refusal(status, ErrorCode.SHUTTING_DOWN, _ENDS, retry_s)
        if not self._service.engine.ready:
            return refusal(status, ErrorCode.OVERLOADED, "the model is being loaded", retry_s)
        if self._service.admission.is_full:
            message = f"{limits.connections} connections are open, which is the limit"
            return refusal(status, ErrorCode.OVERLOADED, message, retry_s)
        if self._service.admission.share(owner).is_full:
            message = f"{limits.key_connections} connections are open with this API key, which is the limit"
            return refusal(HTTPStatus.TOO_MANY_REQUESTS, ErrorCode.RATE_LIMITED, message, retry_s)
        return None


def _check_masks(request: web.Request) -> None:
    """From here on; a client sends no frames before the handshake is answered (RFC 6455, section 4.1)."""
    if request.transport is None:
        raise ConnectionResetError
    request.transport.set_protocol(MaskCheck(request.protocol))


def _bounded(transport: asyncio.Transport | None, send_buffer_bytes: int) -> asyncio.Transport:
    """Little is on its way at any time, so that a cancel is heard soon and a slow reader is noticed."""
    if transport is None:
        raise ConnectionResetError
    transport.set_write_buffer_limits(high=1)  # with 0 a TLS transport pauses for ever, though nothing waits
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    return transport
