"""The speech of one segment, as the gateway hears it from the two stages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from inference.messages import AudioChunk, Cancel, Credit, Finished, Started, Submit


class EngineError(Exception):
    """A stream, or the engine, has failed; `code` is one of the wire protocol's.  `retry`: it may work a little later,
    as stages are being started."""

    def __init__(self, code: str, message: str, retry: bool = False) -> None:
        super().__init__(message)
        self.code, self.message, self.retry = code, message, retry


class Stages(Protocol):
    """What a stream needs of the pair of stages that speaks it."""

    def send(self, stage_id: int, message: object) -> None:
        """Hand a message to a stage."""

    def forget(self, stream: EngineStream) -> bool:
        """Drop a stream from the books -> whether it was still there."""


class EngineStream:
    """The speech of one segment: iterate for its chunks of samples."""

    def __init__(self, stages: Stages, request: Submit) -> None:
        self.request = request
        self.started: Started | None = None
        self.finished: Finished | None = None  # set before the last chunk is yielded
        self.generated = asyncio.Event()  # stage 0 has made the last frame, or the stream has failed
        self._last_arrived = False  # stage 1 has decoded the last frame
        self._stages = stages
        self._arrived: asyncio.Queue[AudioChunk | Finished | EngineError | None] = asyncio.Queue()  # None: cancelled

    async def __aiter__(self) -> AsyncIterator[AudioChunk]:
        """Chunks in order, the last one (`last`) maybe empty.  Raises EngineError.  After `cancel` it just ends."""
        last: AudioChunk | None = None
        while True:
            if last is not None and self.finished is not None:
                yield last
                return
            item = await self._arrived.get()
            match item:
                case EngineError():
                    raise item
                case None:
                    return
                case AudioChunk(last=True):
                    last = item  # stage 1 may be heard before stage 0 has told the end
                case AudioChunk():
                    yield item

    def cancel(self) -> None:
        """Stop synthesis; nothing is yielded any more.  Idempotent, and without effect after the end."""
        if self._stages.forget(self):
            self._stages.send(0, Cancel(self.request.stream_id))
            self._stages.send(1, Cancel(self.request.stream_id))
        self.generated.set()
        while not self._arrived.empty():
            self._arrived.get_nowait()
        self._arrived.put_nowait(None)

    def credit(self, granted: bool) -> None:
        """Let it run, or pause it where it is."""
        self._stages.send(0, Credit(self.request.stream_id, granted))

    def deliver(self, message: Started | Finished | AudioChunk | EngineError) -> bool:
        """Something was received for this stream -> whether it is complete.

        The two stages are heard in any order: the last samples may be here before stage 0 has told the end.
        """
        match message:
            case Started():
                self.started = message
            case Finished():
                self.finished = message
                self.generated.set()
                self._arrived.put_nowait(message)
            case EngineError():
                self.generated.set()
                self._arrived.put_nowait(message)
                return True
            case AudioChunk():
                self._last_arrived = message.last
                self._arrived.put_nowait(message)
        return self._last_arrived and self.finished is not None
