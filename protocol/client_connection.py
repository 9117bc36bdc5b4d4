"""The asynchronous client: a session over a WebSocket, its contexts as asynchronous iterators."""

from __future__ import annotations

import asyncio
import contextlib
import random
import weakref
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from typing import Self

import websockets
from websockets.asyncio.client import ClientConnection

from protocol.client_context import ClientContext
from protocol.client_errors import (
    CONNECTION_LOST,
    UNREACHABLE,
    ConnectError,
    ConnectionLost,
    ProtocolViolation,
    SpeechError,
)
from protocol.client_handshake import HANDSHAKE_S, close_socket, open_socket, without_query
from protocol.client_session import ClientSession
from protocol.client_speech import Link, SpeechContext
from protocol.client_values import AudioChunk, Ready
from protocol.codes import ErrorCode

_AHEAD_S = 60.0  # of audio that came and was not taken; then the socket is not read, and the gateway pauses
_FIRST_RETRY_S, _LONGEST_RETRY_S, _MOST_RETRIES = 0.25, 5.0, 6
_PASSING = frozenset(
    {UNREACHABLE, CONNECTION_LOST, ErrorCode.OVERLOADED, ErrorCode.RATE_LIMITED, ErrorCode.SHUTTING_DOWN}
)


class connect:
    """`async with connect(url) as client`, or `client = await connect(url)` and later `await client.close()`.

    `api_key` is sent as `Authorization: Bearer`; `config` takes the keys of `session.config`, but for `framing`.
    Raises ConnectError, and RefusedError for a config that the server does not take.
    """

    def __init__(self, url: str, api_key: str | None = None, **config: object) -> None:
        if "framing" in config:
            raise TypeError("framing is the client's own choice")
        self._client = Client(url, api_key, config)

    def __await__(self):
        return self._client._open().__await__()

    async def __aenter__(self) -> Client:
        return await self._client._open()

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()


class Client:
    """One connection, renewed when it is lost and something waits to be said.  Made by `connect`."""

    def __init__(self, url: str, api_key: str | None, config: dict[str, object]) -> None:
        self._url, self._api_key = url, api_key
        self._session = ClientSession(config)
        self._link = Link(self._session)
        self._holding: weakref.WeakSet[ClientContext] = weakref.WeakSet()  # those whose audio may not all be taken yet
        self._task: asyncio.Task[None] | None = None
        self._closed: SpeechError | None = None

    @property
    def ready(self) -> Ready:
        """What the server says of itself: model, voices, sample rate, limits."""
        return self._session.ready

    @property
    def config(self) -> Mapping[str, object]:
        """The effective configuration, whole."""
        return self._session.config

    @property
    def closed(self) -> bool:
        """It was closed, or gave up for good: no context can be made any more."""
        return self._closed is not None

    def context(
        self, *, voice: str | None = None, seed: int | None = None, language: str | None = None
    ) -> SpeechContext:
        """A new turn of speech; what is None is as configured.  Raises ConnectionLost on a client that was closed."""
        if self._closed is not None:
            raise self._closed
        given = {"voice": voice, "seed": seed, "language": language}
        core = self._session.open(**{key: value for key, value in given.items() if value is not None})
        self._holding.add(core)
        return SpeechContext(self._link, core)

    async def say(self, text: str | AsyncIterable[str], **opening: object) -> AsyncGenerator[AudioChunk, None]:
        """Speak a whole text, or one that still comes; `opening` as in `context`.  Leaving the iteration cancels."""
        async with contextlib.aclosing(self.context(**opening).say(text)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def close(self) -> None:
        """End the connection, and with it all contexts that still speak."""
        self._closed = self._closed or ConnectionLost(CONNECTION_LOST, "the client was closed")
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._session.give_up(self._closed)
        self._link.changed.set()

    # Connection -----------------------------------------------------------------------------------------------------

    async def _open(self) -> Self:
        socket = await self._connect()
        self._task = asyncio.create_task(self._run(socket), name="speech client")
        return self

    async def _connect(self) -> ClientConnection:
        """Up to the point where contexts may speak."""
        socket = await open_socket(self._url, self._api_key)
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                while not self._session.configured:
                    self._session.receive_text(await socket.recv())
                    if refused := self._session.fatal or self._session.refused:
                        raise refused
                    for message in self._session.take():
                        await socket.send(message, text=True)
        except (TimeoutError, websockets.ConnectionClosed) as error:
            await socket.close()
            raise ConnectError(
                UNREACHABLE, f"{without_query(self._url)} does not speak this protocol: {error!r}"
            ) from error
        except BaseException:
            await socket.close()
            raise
        return socket

    async def _run(self, socket: ClientConnection) -> None:
        """Converse, and connect again while something waits; ends with all contexts ended."""
        try:
            while True:
                self._session.disconnected(await self._converse(socket))
                self._link.changed.set()
                await self._link.changed.until(lambda: self._session.wants_connection)
                socket = await self._reconnect()
        except SpeechError as error:
            self._closed = error
        except Exception as error:
            self._closed = ConnectionLost(ErrorCode.INTERNAL, f"the client failed: {error!r}")
            raise
        finally:
            if self._closed is not None:
                self._session.give_up(self._closed)
            self._link.changed.set()

    async def _reconnect(self) -> ClientConnection:
        """With back-off, spread so that not all clients return at once.  Raises what the last attempt raised."""
        for attempt in range(_MOST_RETRIES):
            try:
                return await self._connect()
            except SpeechError as error:
                if error.code not in _PASSING or attempt == _MOST_RETRIES - 1:
                    raise
                longest = min(_LONGEST_RETRY_S, _FIRST_RETRY_S * 2**attempt)
                await asyncio.sleep(max(longest * random.uniform(0.5, 1), (error.retry_after_ms or 0) / 1000))
        raise AssertionError("the last attempt raises")

    async def _converse(self, socket: ClientConnection) -> SpeechError:
        """Read and write until the connection has ended -> why.  Raises ProtocolViolation."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(socket), name="speech client reader")
                tasks.create_task(self._write(socket), name="speech client writer")
        except* websockets.ConnectionClosed as group:
            closed = group.exceptions[0]
        except* ProtocolViolation as group:
            raise group.exceptions[0] from None
        finally:
            await close_socket(socket)
        return self._session.fatal or ConnectionLost(CONNECTION_LOST, f"the connection was lost: {closed}")

    async def _read(self, socket: ClientConnection) -> None:
        while True:
            message = await socket.recv()
            if isinstance(message, bytes):
                self._session.receive_binary(message)
            else:
                self._session.receive_text(message)
            self._link.changed.set()
            await self._link.changed.until(lambda: self._link.urgent > 0 or self._ahead_s() < _AHEAD_S)

    async def _write(self, socket: ClientConnection) -> None:
        while True:
            await self._link.changed.until(self._session.pump)
            for message in self._session.take():
                await socket.send(message, text=True)
            self._link.changed.set()

    def _ahead_s(self) -> float:
        return sum(chunk.seconds for context in self._holding for chunk in context.chunks)
