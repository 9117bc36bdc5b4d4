"""What one connection sends: one message at a time, and no more than the socket takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import WSMsgType

from gateway.service import Service
from gateway.session.client_socket import ClientSocket, ConnectionOver
from gateway.session.liveness import Liveness
from protocol.codes import ErrorCode
from protocol.session import ServerSession


class Writer:
    """Sends the frames that wait in the session and the controls that wait in `liveness`."""

    def __init__(self, socket: ClientSocket, session: ServerSession, liveness: Liveness, service: Service) -> None:
        self._socket, self._session, self._liveness = socket, session, liveness
        self._settings, self._metrics = service.settings, service.metrics
        self._wake = asyncio.Event()
        self._drained = asyncio.Event()

    def wake(self) -> None:
        """There may be something to send."""
        self._wake.set()

    def wake_if_needed(self) -> None:
        """There is something to send, if frames or controls wait."""
        if self._session.waiting_frames or self._liveness.has_controls:
            self._wake.set()

    async def drain(self) -> None:
        """Return when few enough frames wait to be sent, so that the reader may cause more."""
        if self._session.waiting_frames > self._settings.waiting_frames:
            self._drained.clear()
            await self._drained.wait()

    async def run(self, say_next: Callable[[], bool]) -> None:
        """Until the session closes, which raises ConnectionOver as a socket does that takes no more.

        Pings, then messages, then the next piece of audio, which `say_next` tells the session (False: there is none):
        one at a time, so that the former never wait for long.
        """
        while True:
            for data, kind in self._liveness.take_controls():
                await self._send(data, kind)
            await self.send_frames()
            if self._session.waiting_frames <= self._settings.waiting_frames // 2:
                self._drained.set()
            if self._liveness.has_controls or self._session.waiting_frames:
                continue
            if self._session.closing:
                raise ConnectionOver("closed by the server")
            if not say_next():
                self._wake.clear()
                await self._wake.wait()

    async def send_frames(self) -> None:
        """All that wait in the session.  Raises ConnectionOver if the socket takes no more."""
        for frame in self._session.take_frames():
            if frame.error is not None:
                self._metrics.error(frame.error)
            await self._send(frame.data, WSMsgType.BINARY if frame.binary else WSMsgType.TEXT)

    async def _send(self, data: bytes, kind: WSMsgType) -> None:
        """Until the socket has taken it."""
        try:
            async with asyncio.timeout(self._settings.limits.write_stall_s):
                await self._socket.send_frame(data, kind)
            self._metrics.sent(len(data))
        except TimeoutError:
            self._metrics.error(ErrorCode.SLOW_CONSUMER)
            raise ConnectionOver(f"{ErrorCode.SLOW_CONSUMER}: the socket took no more", abort=True) from None
        except ConnectionError:
            raise ConnectionOver("lost", abort=True) from None
