"""The gateway's end of the two stages: starts their processes, speaks to them, and starts them anew when one ends."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from inference.channel import Unframer, frame
from inference.connector import SharedMemoryConnector
from inference.deploy import load_deploy_config
from inference.messages import (
    ARReport,
    AudioChunk,
    Cancel,
    CodecReport,
    Credit,
    Failed,
    Finished,
    ModelInfo,
    Release,
    StageReady,
    StageReport,
    StageStopped,
    Started,
    Submit,
)

log = logging.getLogger("audio8.engine")

_READ_BYTES = 1 << 18
_KILL_AFTER_S = 5.0  # between asking a worker to end (its channel closes) and killing it
_RESTART_AFTER_S = 0.5


class EngineError(Exception):
    """A stream, or the engine, has failed; `code` is one of the wire protocol's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class EngineStream:
    """The speech of one segment: iterate for its chunks of samples."""

    def __init__(self, engine: Engine, request: Submit) -> None:
        self.request = request
        self.started: Started | None = None
        self.finished: Finished | None = None  # set before the last chunk is yielded
        self.generated = asyncio.Event()  # stage 0 has made the last frame, or the stream has failed
        self._last_arrived = False  # stage 1 has decoded the last frame
        self._engine = engine
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
        if self._engine.forget(self):
            self._engine.send(0, Cancel(self.request.stream_id))
            self._engine.send(1, Cancel(self.request.stream_id))
        self.generated.set()
        while not self._arrived.empty():
            self._arrived.get_nowait()
        self._arrived.put_nowait(None)

    def credit(self, granted: bool) -> None:
        """Let it run, or pause it where it is."""
        self._engine.send(0, Credit(self.request.stream_id, granted))

    def deliver(self, message: Started | Finished | AudioChunk | EngineError) -> bool:
        """The engine has received something for this stream -> whether it is complete.

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


@dataclass(slots=True, eq=False)
class _Worker:
    """One process and the channels to its stages."""

    process: asyncio.subprocess.Process
    writers: dict[int, asyncio.StreamWriter]
    readers: list[asyncio.Task]


class Engine:
    """Both stages.  `ready` tells whether they can speak; when one ends, its streams fail and both are started anew."""

    def __init__(self, model: str | None, deploy_config: Path, device: str = "auto", log_level: str = "info") -> None:
        """Raises DeployConfigError."""
        self.deploy = load_deploy_config(deploy_config)
        self.info: ModelInfo | None = None
        self.devices: dict[int, str] = {}
        self.restarts = 0
        self._reports: dict[type, StageReport] = {}  # the last of each stage
        self.on_report: Callable[[StageReport], None] = _ignore  # called with each report of a stage
        self._arguments = ["--deploy-config", str(deploy_config), "--device", device, "--log-level", log_level]
        if model is not None:
            self._arguments += ["--model", model]
        self._ids, self._listeners = itertools.count(1), itertools.count(1)
        self._streams: dict[int, EngineStream] = {}
        self._workers: list[_Worker] = []
        self._connector: SharedMemoryConnector | None = None
        self._ready = asyncio.Event()
        self._broken: str | None = None
        self._supervisor: asyncio.Task | None = None

    @property
    def ready(self) -> bool:
        """Both stages have loaded and warmed up."""
        return self._ready.is_set()

    @property
    def latest_reports(self) -> list[StageReport]:
        """What each stage that is running has reported last."""
        return list(self._reports.values())

    async def start(self) -> None:
        """Start the stages and wait until they can speak.  Raises EngineError if one cannot start."""
        started = asyncio.get_running_loop().create_future()
        self._supervisor = asyncio.create_task(self._supervise(started), name="engine supervisor")
        await started

    async def close(self) -> None:
        """End the stages.  Streams that are left fail."""
        if self._supervisor is not None:
            self._supervisor.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._supervisor

    def kill(self) -> None:
        """End the processes of the stages at once: this one is about to end without `close`."""
        for worker in self._workers:
            with contextlib.suppress(ProcessLookupError):
                worker.process.kill()

    def next_stream_id(self) -> int:
        """Unique for the life of the process."""
        return next(self._ids)

    def next_listener(self) -> int:
        """A context's number, unique for the life of the process."""
        return next(self._listeners)

    def submit(self, request: Submit) -> EngineStream:
        """Begin to speak a segment.  Raises EngineError while the stages cannot."""
        if not self.ready:
            raise EngineError("engine_failed", "the engine is starting, ask again in a moment")
        stream = EngineStream(self, request)
        self._streams[request.stream_id] = stream
        self.send(0, request)
        return stream

    def release(self, listener: int) -> None:
        """The context needs no more speech: its share of the engine is free."""
        self.send(0, Release(listener))

    def send(self, stage_id: int, message: object) -> None:
        """Hand a message to a stage; without effect while that stage is down, for its streams have failed already."""
        for worker in self._workers:
            if stage_id in worker.writers:
                worker.writers[stage_id].write(frame(message))

    def forget(self, stream: EngineStream) -> bool:
        """Drop a stream from the books -> whether it was still there."""
        return self._streams.pop(stream.request.stream_id, None) is not None

    async def _supervise(self, started: asyncio.Future) -> None:
        """Run the stages, again whenever one of them ends; only the first start may fail."""
        try:
            while True:
                await self._run_once(started)
                if not started.done():
                    started.set_exception(EngineError("engine_failed", self._broken or "a stage ended while starting"))
                    return
                self.restarts += 1
                log.error("a stage ended (%s); restart %d", self._broken or "no reason given", self.restarts)
                await asyncio.sleep(_RESTART_AFTER_S)
        finally:
            if not started.done():
                started.cancel()

    async def _run_once(self, started: asyncio.Future) -> None:
        """From the start of both stages until one of their processes ends."""
        self._broken, self.devices, self._reports = None, {}, {}
        self._connector = SharedMemoryConnector.create(self.deploy.connector.get_sleep_s)
        groups = [(0,), (1,)] if self.deploy.stage_placement == "processes" else [(0, 1)]
        ready, exits = asyncio.create_task(self._ready.wait()), []
        try:
            for group in groups:
                self._workers.append(await self._spawn(group))
            exits = [asyncio.create_task(worker.process.wait()) for worker in self._workers]
            await asyncio.wait([ready, *exits], return_when=asyncio.FIRST_COMPLETED)
            if self.ready and not started.done():
                started.set_result(None)
            await asyncio.wait(exits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._ready.clear()
            self._fail_all("a stage of the engine has ended")
            workers, self._workers = self._workers, []
            await asyncio.gather(*(self._stop(worker) for worker in workers))
            for task in (ready, *exits):
                task.cancel()
            self._connector.close()

    async def _spawn(self, stage_ids: tuple[int, ...]) -> _Worker:
        pairs = {stage_id: socket.socketpair() for stage_id in stage_ids}
        theirs = {stage_id: pair[1] for stage_id, pair in pairs.items()}
        stages = [
            argument for stage_id, sock in theirs.items() for argument in ("--stage", f"{stage_id}:{sock.fileno()}")
        ]
        connector = self._connector.fds
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "inference.worker", *stages, "--connector", ":".join(map(str, connector)),
            *self._arguments,
            pass_fds=(*(sock.fileno() for sock in theirs.values()), *connector),
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the gateway, which ends the stages in its own order
        )  # fmt: skip
        worker = _Worker(process, {}, [])
        for stage_id, (ours, other) in pairs.items():
            other.close()
            reader, worker.writers[stage_id] = await asyncio.open_connection(sock=ours)
            worker.readers.append(asyncio.create_task(self._read(reader), name=f"stage {stage_id} reader"))
        return worker

    async def _stop(self, worker: _Worker) -> None:
        """Close the channels, which ends the worker; kill it if it does not."""
        for task in worker.readers:
            task.cancel()
        for writer in worker.writers.values():
            writer.close()
        try:
            await asyncio.wait_for(worker.process.wait(), _KILL_AFTER_S)
        except TimeoutError:
            worker.process.kill()
            await worker.process.wait()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        unframer = Unframer()
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(_READ_BYTES):
                for message in unframer.feed(data):
                    self._receive(message)

    def _receive(self, message: object) -> None:
        match message:
            case StageReady():
                self.info = message.model
                self.devices[message.stage_id] = message.device
                if len(self.devices) == 2:
                    self._ready.set()
            case StageStopped():
                self._broken = message.reason
            case ARReport() | CodecReport():
                self._reports[type(message)] = message
                self.on_report(message)
            case Failed(stream_id=stream_id, code=code, message=text):
                self.send(0, Cancel(stream_id))  # whichever stage failed it, the other one drops it too
                self.send(1, Cancel(stream_id))
                self._deliver(stream_id, EngineError(code, text))
            case _:
                self._deliver(message.stream_id, message)

    def _deliver(self, stream_id: int, message: object) -> None:
        stream = self._streams.get(stream_id)
        if stream is not None and stream.deliver(message):
            self._streams.pop(stream_id)

    def _fail_all(self, reason: str) -> None:
        streams, self._streams = list(self._streams.values()), {}
        for stream in streams:
            stream.deliver(EngineError("engine_failed", reason))


def _ignore(_: StageReport) -> None:
    """Until someone wants to know."""
