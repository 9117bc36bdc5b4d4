"""The same client for programs without an event loop: it runs the asynchronous one in a thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar

from protocol.client_connection import Client, connect
from protocol.client_speech import SpeechContext
from protocol.client_values import AudioChunk, CancelResult, ContextResult, Heard, Ready, Segment

T = TypeVar("T")


def connect_sync(url: str, api_key: str | None = None, **config: object) -> SyncClient:
    """`with connect_sync(url) as client`; arguments and errors are those of `connect`."""
    loop = LoopThread()
    try:
        return SyncClient(loop, loop.call(_open(connect(url, api_key, **config))))
    except BaseException:
        loop.close()
        raise


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="speech client", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result.  An exception that comes here meanwhile, such as KeyboardInterrupt, cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End the thread; a second call changes nothing."""
        if self._loop.is_closed():
            return
        self.call(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SyncClient:
    """See `Client`."""

    def __init__(self, loop: LoopThread, client: Client) -> None:
        self._loop, self._client = loop, client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ready(self) -> Ready:
        """What the server says of itself."""
        return self._client.ready

    @property
    def config(self) -> Mapping[str, object]:
        """The effective configuration, whole."""
        return self._client.config

    @property
    def closed(self) -> bool:
        """It was closed, or gave up for good."""
        return self._client.closed

    def context(self, **opening: Any) -> SyncContext:
        """A new turn of speech; arguments as of `Client.context`."""

        async def make() -> SpeechContext:
            return self._client.context(**opening)

        return SyncContext(self._loop, self._loop.call(make()))

    def say(self, text: str | Iterable[str], **opening: Any) -> Iterator[AudioChunk]:
        """Speak a text, or pieces of one that are taken from the iterable, in a thread, while audio comes."""
        yield from _iterate(self._loop, self._client.say(_pulled(text), **opening))

    def close(self) -> None:
        """End the connection, and with it all contexts that still speak."""
        try:
            self._loop.call(self._client.close())
        finally:
            self._loop.close()


class SyncContext:
    """See `SpeechContext`; text and audio may be handled in different threads."""

    def __init__(self, loop: LoopThread, context: SpeechContext) -> None:
        self._loop, self._context = loop, context

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call(self._context.__aexit__())

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Which audio speaks which text, as far as audio has come."""

        async def look() -> tuple[Segment, ...]:
            return self._context.segments

        return self._loop.call(look())

    @property
    def result(self) -> ContextResult | None:
        """Reason, usage and metrics, once all is spoken."""
        return self._context.result

    def heard(self, offset_ms: float | None = None) -> Heard:
        """All its text, cut where a listener is who has heard `offset_ms` of audio."""

        async def look() -> Heard:
            return self._context.heard(offset_ms)

        return self._loop.call(look())

    def say(self, text: str | Iterable[str]) -> Iterator[AudioChunk]:
        """All of a text, whole or in pieces, and its audio.  A `cancel` ends the iteration; leaving it cancels."""
        yield from _iterate(self._loop, self._context.say(_pulled(text)))

    def send(self, text: str) -> None:
        """Append text, verbatim."""
        self._loop.call(self._context.send(text))

    def flush(self) -> int:
        """Speak all that was sent -> the position behind its last sample."""
        return self._loop.call(self._context.flush())

    def done(self) -> None:
        """No more text."""
        self._loop.call(self._context.done())

    def cancel(self, playback_offset_ms: float | None = None) -> CancelResult:
        """Stop, and drop what was not taken."""
        return self._loop.call(self._context.cancel(playback_offset_ms))

    def __iter__(self) -> Iterator[AudioChunk]:
        async def take() -> AudioChunk | None:
            return await anext(self._context, None)

        while (chunk := self._loop.call(take())) is not None:
            yield chunk


async def _open(opening: connect) -> Client:
    return await opening


def _iterate(loop: LoopThread, chunks: AsyncGenerator[AudioChunk, None]) -> Iterator[AudioChunk]:
    async def take() -> AudioChunk | None:
        return await anext(chunks, None)

    try:
        while (chunk := loop.call(take())) is not None:
            yield chunk
    finally:
        loop.call(chunks.aclose())


def _pulled(text: str | Iterable[str]) -> str | AsyncIterator[str]:
    return text if isinstance(text, str) else _pull(text)


async def _pull(pieces: Iterable[str]) -> AsyncIterator[str]:
    iterator = iter(pieces)
    while (piece := await _in_thread(lambda: next(iterator, None))) is not None:
        yield piece


def _in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Its result.  The thread is a daemon: an iterator that never returns does not keep a program from ending."""
    future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def run() -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

    threading.Thread(target=run, name="speech text", daemon=True).start()
    return asyncio.wrap_future(future)
