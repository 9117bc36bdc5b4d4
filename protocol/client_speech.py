"""One turn of speech for asynchronous programs: text is pushed, audio is iterated, both at the same time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from dataclasses import dataclass, field
from typing import Self

from protocol.client_context import ClientContext, State
from protocol.client_errors import ContextEnded, SpeechError
from protocol.client_session import ClientSession
from protocol.client_values import AudioChunk, CancelResult, ContextResult, Heard, Segment
from protocol.codes import ErrorCode


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


@dataclass(slots=True)
class Link:
    """What a client and its contexts share.  `urgent`: callers whose answer may come behind audio that nobody takes."""

    session: ClientSession
    changed: Signal = field(default_factory=Signal)
    urgent: int = 0


class SpeechContext:
    """One turn of speech: push text, take audio, at the same time.  Made by `Client.context`.

    A task that is cancelled while it waits here cancels the context; so does leaving `async with context`.  Text of any
    length and its audio need two tasks: the server takes more only as it speaks, and it speaks only as audio is taken.
    """

    def __init__(self, link: Link, core: ClientContext) -> None:
        self._link, self._core = link, core

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._abandon()

    @property
    def result(self) -> ContextResult | None:
        """Reason, usage and metrics, once all is spoken; None before, and after a cancel or failure."""
        return self._core.result

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Which audio speaks which text, as far as audio has come: for captions and the like."""
        return self._core.segments

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
        self._link.session.cancel(self._core, playback_offset_ms)
        await self._until(lambda: self._core.cancelled is not None, urgent=True)
        return self._core.cancelled

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AudioChunk:
        await self._until(lambda: bool(self._core.chunks))
        if self._core.chunks:
            chunk = self._core.chunks.popleft()
            self._link.changed.set()
            return chunk
        if self._core.error is not None:
            raise self._core.error
        raise StopAsyncIteration

    async def say(self, text: str | AsyncIterable[str]) -> AsyncGenerator[AudioChunk, None]:
        """`speak` and the audio of it, both at the same time.  A `cancel` ends the iteration; leaving it cancels.

        Raises ContextEnded if the server ended the context because no text came for too long, and what `text` raises.
        """
        async with self:
            pushing = asyncio.create_task(self.speak(text), name="say")
            try:
                async for chunk in self:
                    yield chunk
                if self.result is not None and self.result.reason == "idle":
                    message = "no text came for too long, so the server ended the speech"
                    raise ContextEnded(ErrorCode.CONTEXT_ENDED, message)
                if self._core.cancelled is None:
                    await pushing
                elif pushing.done():  # it may be why: a text that fails cancels its context
                    with contextlib.suppress(ContextEnded):
                        await pushing
            finally:
                pushing.cancel()
                await asyncio.gather(pushing, return_exceptions=True)

    async def speak(self, text: str | AsyncIterable[str]) -> None:
        """Send all of a text, whole or still coming, then `done`.  If that fails the context is cancelled."""
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
        self._link.urgent += urgent
        self._link.changed.set()
        try:
            await self._link.changed.until(lambda: condition() or self._core.ended)
        except asyncio.CancelledError:
            self._abandon()
            raise
        finally:
            self._link.urgent -= urgent

    def _abandon(self) -> None:
        """Cancel without waiting for the answer."""
        self._link.session.cancel(self._core)
        self._link.changed.set()

    def _why(self, otherwise: str) -> SpeechError:
        return self._core.error or ContextEnded(ErrorCode.CONTEXT_ENDED, f"context {self._core.name}: {otherwise}")
