"""Through a door: from the HTTP request to a running connection, or a refusal before the upgrade."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from http import HTTPStatus

from aiohttp import HttpVersion11, hdrs, web

from gateway.http.door import Door, Opening, TalkingDoor
from gateway.http.first_message import first_message
from gateway.http.gatekeeper import Gatekeeper
from gateway.http.masking import MaskCheck
from gateway.http.refusals import Denial
from gateway.http.running import Running
from gateway.http.transports import bounded
from gateway.keys import offered_key
from gateway.service import Service, config_rules, hello
from gateway.session.client_socket import ClientSocket
from gateway.session.connection import Connection
from protocol.codes import ErrorCode, Refusal
from protocol.config import ConfigRules
from protocol.session import ServerSession

log = logging.getLogger(__name__)


class StreamEndpoint:
    """Lets requests in, and counts them among what is `running`."""

    def __init__(self, service: Service, gatekeeper: Gatekeeper, running: Running) -> None:
        self._service, self._gatekeeper, self._running = service, gatekeeper, running

    def through(self, door: Door) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """The handler of requests that come to this door."""

        async def handle(request: web.Request) -> web.StreamResponse:
            opening = self._gatekeeper.denial(request) or self._denial(request) or self._open(request, door)
            if isinstance(opening, Denial):
                return door.refuse(opening)
            owner = self._gatekeeper.owner(request)
            return await self._upgrade(request, door, partial(self._run, request, door, opening, owner))

        async def talk(request: web.Request) -> web.StreamResponse:
            denial = self._gatekeeper.foreign(request) or self._denial(request)
            return (
                door.refuse(denial)
                if denial
                else await self._upgrade(request, door, partial(self._talk, request, door))
            )

        return talk if isinstance(door, TalkingDoor) else handle

    def _open(self, request: web.Request, door: Door) -> Opening | Denial:
        try:
            return door.open(request, self._rules(), self._service.settings.limits)
        except Refusal as refused:
            return Denial(HTTPStatus.BAD_REQUEST, refused.code, refused.message)

    def _rules(self) -> ConfigRules:
        return config_rules(self._service.engine.info, self._service.voices, self._service.settings)

    async def _upgrade(
        self, request: web.Request, door: Door, serve: Callable[[ClientSocket, asyncio.Transport], Awaitable[None]]
    ) -> web.StreamResponse:
        """Serve one connection to its end."""
        settings = self._service.settings
        websocket = ClientSocket(
            protocols=door.subprotocols,
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
            transport = bounded(request.transport, settings.send_buffer_bytes)
        except ConnectionError:  # the client has left in the middle of the handshake: nobody is left to be answered
            return websocket if websocket.prepared else web.Response()
        await serve(websocket, transport)
        return websocket

    async def _run(
        self,
        request: web.Request,
        door: Door,
        opening: Opening,
        owner: str | None,
        websocket: ClientSocket,
        transport: asyncio.Transport,
    ) -> None:
        name = secrets.token_hex(8)
        log.info("connection open connection=%s path=%s peer=%s key=%s", name, door.path, request.remote, owner or "-")
        share = self._service.admission.share(owner)
        session = self._session(opening, name)
        await self._running.serve(Connection(websocket, transport, session, self._service, share, name), share)

    async def _talk(
        self, request: web.Request, door: TalkingDoor, websocket: ClientSocket, transport: asyncio.Transport
    ) -> None:
        """Whoever is not served hears it on the open socket."""
        owner = await self._late_owner(request, door, websocket)
        opening = self._gatekeeper.unknown(owner) or self._gatekeeper.no_room(owner) or self._open(request, door)
        if isinstance(opening, Denial):
            log.info("connection refused path=%s peer=%s code=%s", door.path, request.remote, opening.code)
            self._service.metrics.error(opening.code)
            farewell = door.farewell(opening)
            await websocket.dismiss(farewell.data, farewell.close, farewell.reason)
        else:
            await self._run(request, door, opening, owner, websocket, transport)

    async def _late_owner(self, request: web.Request, door: TalkingDoor, websocket: ClientSocket) -> str | None:
        """Of the key that the request brings, or else the first message."""
        owner = self._gatekeeper.owner(request)
        if self._gatekeeper.unknown(owner) is None or offered_key(request.headers, request.query) is not None:
            return owner
        admission = self._service.admission
        admission.connections += 1
        try:
            first = await first_message(websocket, self._service.settings.limits.handshake_s)
        finally:
            admission.connections -= 1
        return None if first is None else self._gatekeeper.owner_of(door.key_in(first))

    def _session(self, opening: Opening, name: str) -> ServerSession:
        service = self._service
        rules = replace(self._rules(), defaults=opening.config)
        introduction = hello(service.engine.info, service.voices, service.settings, name)
        return ServerSession(introduction, rules, opening.limits, service.clock(), opening.dialect)

    def _denial(self, request: web.Request) -> Denial | None:
        """Why nobody's request of this kind is upgraded now, None if it is."""
        is_get = request.method == hdrs.METH_GET and request.version >= HttpVersion11  # RFC 6455, section 4.2.1
        if not is_get or request.headers.get("Upgrade", "").lower() != "websocket":
            status, message = HTTPStatus.UPGRADE_REQUIRED, "this is a WebSocket endpoint"
            return Denial(status, ErrorCode.UPGRADE_REQUIRED, message, headers={"Upgrade": "websocket"})
        return self._gatekeeper.no_room(self._gatekeeper.owner(request))


def _check_masks(request: web.Request) -> None:
    """From here on; a client sends no frames before the handshake is answered (RFC 6455, section 4.1)."""
    if request.transport is None:
        raise ConnectionResetError
    request.transport.set_protocol(MaskCheck(request.protocol))
