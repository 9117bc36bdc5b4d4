"""One connection of the native protocol: a reader, a writer, a clock, and a task for each open context."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from aiohttp import WSMessage, WSMsgType

from gateway.admission import Share
from gateway.errors import client_error
from gateway.service import Service
from gateway.session.client_socket import ClientSocket, ConnectionOver, is_too_big
from gateway.session.contexts import Contexts
from gateway.session.liveness import Liveness
from gateway.session.writer import Writer
from protocol.codes import CloseCode
from protocol.events import Event
from protocol.session import Closing, ServerSession

log = logging.getLogger(__name__)

_HEARD_OUT_S = 0.5  # for the rest of a message that is too big: closed on it, the other side may not get to read why


class Connection:
    """Runs a session over a socket that is open."""

    def __init__(
        self,
        socket: ClientSocket,
        transport: asyncio.Transport,
        session: ServerSession,
        service: Service,
        share: Share,
        name: str,
    ) -> None:
        self._socket, self._transport, self._session, self._name = socket, transport, session, name
        self._settings, self._clock = service.settings, service.clock
        self._tasks = asyncio.TaskGroup()
        self._liveness = Liveness(self._settings.limits, self._clock())
        self._writer = Writer(socket, session, self._liveness, service)
        self._contexts = Contexts(session, service, share, name, self._tasks, self._writer.wake)
        self._is_deaf = False  # what comes is not read any more
        self._is_over = False

    async def run(self) -> None:
        """Until either side ends it.  Frees all that it holds, whatever the cause."""
        over = ConnectionOver("ended")
        try:
            async with self._tasks as tasks:
                tasks.create_task(self._read(), name=f"{self._name} reader")
                tasks.create_task(self._writer.run(self._contexts.say_next), name=f"{self._name} writer")
                tasks.create_task(self._tick(), name=f"{self._name} clock")
        except* ConnectionOver as group:
            over, *_ = [each.bare() for each in group.exceptions]
        except* Exception as group:
            over = await self._fail(group)
        finally:
            self._is_over = True
            self._contexts.end_all("disconnected")
            await self._close(over)

    @property
    def unsent_audio_s(self) -> float:
        """Audio that waits to be sent."""
        return self._contexts.unsent_audio_s

    def context_states(self) -> Iterator[str]:
        """Of each open context the state that `session.progress` would tell."""
        return self._contexts.states()

    def wind_down(self, message: str) -> None:
        """The server is about to end: what is open may end first."""
        self._session.wind_down(message)
        self._writer.wake()

    def shut_down(self, message: str) -> None:
        """The server ends."""
        if not self._is_over:
            for event in self._session.shut_down(message):
                self._contexts.end(event.number, "failed")
            self._writer.wake()

    def abort(self) -> None:
        """Waits for nothing: the socket goes, and with it all else."""
        self._transport.abort()

    # Reader ---------------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            message = await self._socket.receive()
            now = self._clock()
            self._liveness.heard(now)
            self._is_deaf = is_too_big(message)
            self._contexts.act(self._session.receive_too_big() if self._is_deaf else self._events(message, now))
            self._writer.wake()
            if self._is_deaf:
                return
            await self._writer.drain()
            await asyncio.sleep(0)  # a client that sends without pause must not keep others from their turn

    def _events(self, message: WSMessage, now: float) -> list[Event]:
        match message.type:
            case WSMsgType.TEXT:
                return self._session.receive_text(message.data, now)
            case WSMsgType.BINARY:
                return self._session.receive_binary(now)
            case WSMsgType.PING:
                self._liveness.owe_pong(message.data)
                return []
            case WSMsgType.PONG:
                return []
            case _:
                raise ConnectionOver("closed by the client")

    # Clock ----------------------------------------------------------------------------------------------------------

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._settings.tick_s)
            now = self._clock()
            self._contexts.act(self._session.tick(now))
            self._contexts.show_progress(now)
            if self._liveness.is_gone(now, self._contexts.playback_ends):
                raise ConnectionOver("no answer to a ping", abort=True)
            self._liveness.ping_if_silent(now)
            self._writer.wake_if_needed()

    # End ------------------------------------------------------------------------------------------------------------

    async def _fail(self, group: BaseExceptionGroup) -> ConnectionOver:
        """A bug of ours ended the tasks: say so as far as that is possible."""
        error = client_error(group)
        message = "an internal error ended the connection"
        self._contexts.act(self._session.fail_session(error.code, CloseCode.INTERNAL, message))
        try:
            await self._writer.send_frames()
        except ConnectionOver as over:
            return over
        return ConnectionOver("internal error")

    async def _close(self, over: ConnectionOver) -> None:
        log.info("connection over connection=%s why=%s", self._name, over)
        closing = self._session.closing or Closing(CloseCode.INTERNAL, "")
        if not over.abort:
            if self._is_deaf:
                await asyncio.sleep(_HEARD_OUT_S)
            try:
                async with asyncio.timeout(self._settings.close_s):
                    await self._socket.close(code=closing.code, message=closing.reason.encode())
                return
            except (TimeoutError, ConnectionError):
                log.info("client does not close connection=%s", self._name)
        self._transport.abort()
