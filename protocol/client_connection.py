"""The asynchronous client: a session over a WebSocket, its contexts as asynchronous iterators."""

from __future__ import annotations

import asyncio
import random
import weakref
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Self

import orjson
import websockets
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_websocket

from protocol.client_context import AudioChunk, CancelResult, ClientContext, ContextResult, Heard, State
from protocol.client_errors import (
    CONNECTION_LOST,
    UNREACHABLE,
    ConnectError,
    ConnectionLost,
    ContextEnded,
    ProtocolViolation,
    SpeechError,
)
from protocol.client_session import ClientSession, Ready
from protocol.codes import ErrorCode
from protocol.messages import SUBPROTOCOL

_AHEAD_S = 60.0  # of audio that came and was not taken; then the socket is not read, and the gateway pauses
_HANDSHAKE_S = 10.0
_CLOSE_S = 2.0
_MOST_MESSAGE_BYTES = 16 * 2**20
# The answer to a ping comes behind the audio that the socket's buffers hold, which may be more than a minute of it.
_PING_INTERVAL_S, _PING_TIMEOUT_S = 10.0, 120.0
_FIRST_RETRY_S, _LONGEST_RETRY_S, _MOST_RETRIES = 0.25, 5.0, 6
_PASSING = frozenset(
    {UNREACHABLE, CONNECTION_LOST, ErrorCode.OVERLOADED, ErrorCode.RATE_LIMITED, ErrorCode.SHUTTING_DOWN}
)


class Signal:
    """Wakes all who wait whenever something has changed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return once `condition` holds."""
        while not condition():
            await self._event.wait()


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
        self._changed = Signal()
        self._holding: weakref.WeakSet[ClientContext] = weakref.WeakSet()  # those whose audio may not all be taken yet
        self._urgent = 0  # callers who wait for an answer that may come behind audio which nobody takes meanwhile
        self._task: asyncio.Task[None] | None = None
        self._closed: SpeechError | None = None

    @property
    def ready(self) -> Ready:
        """What the server says of itself: model, voices, sample rate, limits."""
        return self._session.ready

    def context(
        self, *, voice: str | None = None, seed: int | None = None, language: str | None = None
    ) -> SpeechContext:
        """A new turn of speech; what is None is as configured.  Raises ConnectionLost on a client that was closed."""
        if self._closed is not None:
            raise self._closed
        given = {"voice": voice, "seed": seed, "language": language}
        core = self._session.open(**{key: value for key, value in given.items() if value is not None})
        self._holding.add(core)
        return SpeechContext(self, core)

    async def say(self, text: str | AsyncIterable[str], **opening: object) -> AsyncIterator[AudioChunk]:
        """Speak a whole text, or one that still comes; `opening` as in `context`.  Leaving the iteration cancels."""
        async with self.context(**opening) as context:
            pushing = asyncio.create_task(context._push_all(text), name="say")
            try:
                async for chunk in context:
                    yield chunk
                if context.result is not None and context.result.reason == "idle":
                    raise ContextEnded(
                        ErrorCode.CONTEXT_ENDED, "no text came for too long, so the server ended the speech"
                    )
                await pushing
            finally:
                pushing.cancel()
                await asyncio.gather(pushing, return_exceptions=True)

    async def close(self) -> None:
        """End the connection, and with it all contexts that still speak."""
        self._closed = self._closed or ConnectionLost(CONNECTION_LOST, "the client was closed")
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._session.give_up(self._closed)
        self._changed.set()

    # Connection -----------------------------------------------------------------------------------------------------

    async def _open(self) -> Self:
        socket = await self._connect()
        self._task = asyncio.create_task(self._run(socket), name="speech client")
        return self

    async def _connect(self) -> ClientConnection:
        """Up to the point where contexts may speak."""
        socket = await self._handshake()
        try:
            async with asyncio.timeout(_HANDSHAKE_S):
                while self._session.configured is None:
                    self._session.receive_text(await socket.recv())
                    if refused := self._session.fatal or self._session.refused:
                        raise refused
                    for message in self._session.take():
                        await socket.send(message, text=True)
        except (TimeoutError, websockets.ConnectionClosed) as error:
            await socket.close()
            raise ConnectError(UNREACHABLE, f"{self._url} does not speak this protocol: {error!r}") from error
        except BaseException:
            await socket.close()
            raise
        return socket

    async def _handshake(self) -> ClientConnection:
        headers = {} if self._api_key is None else {"Authorization": f"Bearer {self._api_key}"}
        try:
            return await connect_websocket(
                self._url, additional_headers=headers, subprotocols=[SUBPROTOCOL], compression=None,
                max_size=_MOST_MESSAGE_BYTES, open_timeout=_HANDSHAKE_S, close_timeout=_CLOSE_S,
                ping_interval=_PING_INTERVAL_S, ping_timeout=_PING_TIMEOUT_S,
            )  # fmt: skip
        except websockets.InvalidStatus as error:
            raise _refusal(error.response) from error
        except (OSError, TimeoutError, websockets.InvalidHandshake, websockets.InvalidURI) as error:
            raise ConnectError(UNREACHABLE, f"no gateway at {self._url}: {error}") from error

    async def _run(self, socket: ClientConnection) -> None:
        """Converse, and connect again while something waits; ends with all contexts ended."""
        try:
            while True:
                self._session.disconnected(await self._converse(socket))
                self._changed.set()
                await self._changed.until(lambda: self._session.wants_connection)
                socket = await self._reconnect()
        except SpeechError as error:
            self._closed = error
        except Exception as error:
            self._closed = ConnectionLost(ErrorCode.INTERNAL, f"the client failed: {error!r}")
            raise
        finally:
            if self._closed is not None:
                self._session.give_up(self._closed)
            self._changed.set()

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
            await socket.close()
        if fatal := self._session.fatal:
            return ConnectionLost(fatal.code, fatal.message)
        return ConnectionLost(CONNECTION_LOST, f"the connection was lost: {closed}")

    async def _read(self, socket: ClientConnection) -> None:
        while True:
            message = await socket.recv()
            if isinstance(message, bytes):
                self._session.receive_binary(message)
            else:
                self._session.receive_text(message)
            self._changed.set()
            await self._changed.until(lambda: self._urgent > 0 or self._ahead_s() < _AHEAD_S)

    async def _write(self, socket: ClientConnection) -> None:
        while True:
            await self._changed.until(self._session.pump)
            for message in self._session.take():
                await socket.send(message, text=True)
            self._changed.set()

    def _ahead_s(self) -> float:
        chunks = (chunk for context in self._holding for chunk in context.chunks)
        return sum(chunk.samples / chunk.sample_rate for chunk in chunks)


class SpeechContext:
    """One turn of speech: push text, take audio, at the same time.  Made by `Client.context`.

    A task that is cancelled while it waits here cancels the context; so does leaving `async with context`.  Text of any
    length and its audio need two tasks: the server takes more only as it speaks, and it speaks only as audio is taken.
    """

    def __init__(self, client: Client, core: ClientContext) -> None:
        self._client, self._core = client, core

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._abandon()

    @property
    def result(self) -> ContextResult | None:
        """Reason, usage and metrics, once all is spoken; None before, and after a cancel or failure."""
        return self._core.result

    def heard(self, offset_ms: float | None = None) -> Heard:
        """All its text, cut where a listener is who has heard `offset_ms` of audio; also after its end."""
        return self._core.heard(offset_ms)

    async def send(self, text: str) -> None:
        """Append text, verbatim; returns once all of it is on its way.  Raises ContextEnded, or why it failed."""
        self._core.push(text)
        await self._until(lambda: not self._core.queue)
        if self._core.state in (State.CANCELLING, State.ENDED):
            raise self._why("text came after its end")

    async def flush(self) -> int:
        """Speak all that was sent; returns the position behind its last sample once the server has sent it."""
        label = self._core.flush()
        await self._until(lambda: label in self._core.flushed, urgent=True)
        if label not in self._core.flushed:
            raise self._why("it ended before the flush was answered")
        return self._core.flushed.pop(label)

    async def done(self) -> None:
        """No more text: the rest is spoken, and then the iteration ends."""
        self._core.done()
        await self._until(lambda: not self._core.queue)

    async def cancel(self, playback_offset_ms: float | None = None) -> CancelResult:
        """Stop, and drop what was not taken; `playback_offset_ms`: how much of it was heard.  No audio follows."""
        self._client._session.cancel(self._core, playback_offset_ms)
        await self._until(lambda: self._core.cancelled is not None, urgent=True)
        return self._core.cancelled

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AudioChunk:
        await self._until(lambda: bool(self._core.chunks))
        if self._core.chunks:
            chunk = self._core.chunks.popleft()
            self._client._changed.set()
            return chunk
        if self._core.error is not None:
            raise self._core.error
        raise StopAsyncIteration

    async def _push_all(self, text: str | AsyncIterable[str]) -> None:
        try:
            if isinstance(text, str):
                await self.send(text)
            else:
                async for piece in text:
                    await self.send(piece)
            await self.done()
        except BaseException:
            self._abandon()
            raise

    async def _until(self, condition: Callable[[], bool], urgent: bool = False) -> None:
        """Wait for `condition` or the end.  `urgent`: audio that nobody takes must not keep it from coming."""
        self._client._urgent += urgent
        self._client._changed.set()
        try:
            await self._client._changed.until(lambda: condition() or self._core.ended)
        except asyncio.CancelledError:
            self._abandon()
            raise
        finally:
            self._client._urgent -= urgent

    def _abandon(self) -> None:
        """Cancel without waiting for the answer."""
        self._client._session.cancel(self._core)
        self._client._changed.set()

    def _why(self, otherwise: str) -> SpeechError:
        return self._core.error or ContextEnded(ErrorCode.CONTEXT_ENDED, f"context {self._core.name}: {otherwise}")


def _refusal(response: websockets.Response) -> ConnectError:
    """What the gateway says in a refused handshake: its JSON body, else the status."""
    retry_after = response.headers.get("Retry-After", "")
    retry_after_ms = 1000 * int(retry_after) if retry_after.isdecimal() else None
    try:
        body = orjson.loads(response.body)
        return ConnectError(body["code"], f"the gateway refused: {body['message']}", retry_after_ms)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = f"no gateway answers there, but a server with status {response.status_code}"
        return ConnectError(UNREACHABLE, message, retry_after_ms)
