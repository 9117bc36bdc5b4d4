"""One replica of the model: a pair of stages that are started, watched, and started anew together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gateway.engine.restarts import RestartPause
from gateway.engine.silence import Silence
from gateway.engine.stage_process import StageProcess
from gateway.engine.stream import EngineError, EngineStream
from inference.connector import SharedMemoryConnector
from inference.deploy import DeployConfig
from inference.messages import (
    ARReport,
    Beat,
    Cancel,
    CodecReport,
    Encode,
    Encoded,
    EncodeFailed,
    Failed,
    ModelInfo,
    StageReady,
    StageReport,
    StageStopped,
    Submit,
)

log = logging.getLogger("audio8.engine")

STARTING_S = 300.0  # a process that loads PyTorch, until its stage says how long it will take to load the model
_LOOK_S = 0.1  # between two looks at whether a stage hangs


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """What is told of a replica.  `devices`: of its stages that have loaded."""

    ready: bool
    devices: dict[int, str]
    restarts: int


class Replica:
    """Stage 0 and stage 1 with the connector between them, and the streams that they speak.

    When one stage ends, hangs or breaks, both are started anew.  Nearly all streams need both: those in stage 0 hand
    everything to the decode states of stage 1, and those that stage 1 still decodes live on what stage 0 wrote.  A new
    pair has no past, and since both load at the same time it speaks as soon as one new stage would.
    """

    def __init__(
        self, index: int, deploy: DeployConfig, arguments: Sequence[str], on_report: Callable[[StageReport], None]
    ) -> None:
        """`arguments` of `inference.worker`, those that are alike for all stages; `on_report` takes their reports."""
        self.index = index
        self.info: ModelInfo | None = None
        self.restarts = 0
        self._deploy, self._arguments = deploy, [*arguments, "--replica", str(index)]
        self._on_report = on_report
        self._streams: dict[int, EngineStream] = {}
        self._encodes: dict[int, asyncio.Future[np.ndarray]] = {}  # by request_id
        self._workers: list[StageProcess] = []
        self._devices: dict[int, str] = {}
        self._reports: dict[type, StageReport] = {}  # the last of each stage
        self._silence = Silence()
        self._ready = asyncio.Event()
        self._useful = False  # a stream was spoken to its end in this life of the stages
        self._started: asyncio.Future[None] | None = None
        self._over: asyncio.Future[str] | None = None  # why this life of the stages ended

    @property
    def ready(self) -> bool:
        """Both stages have loaded and warmed up."""
        return self._ready.is_set()

    @property
    def state(self) -> ReplicaState:
        """For whoever watches the server."""
        return ReplicaState(self.ready, dict(self._devices), self.restarts)

    @property
    def pids(self) -> tuple[int, ...]:
        """Its processes: stage 0's and stage 1's, or the one of both."""
        return tuple(worker.pid for worker in self._workers)

    @property
    def latest_reports(self) -> list[StageReport]:
        """What each of its stages has reported last, while it runs."""
        return list(self._reports.values())

    @property
    def streams(self) -> int:
        """Streams that have not ended."""
        return len(self._streams)

    async def wait_ready(self) -> None:
        """Until it can speak (again)."""
        await self._ready.wait()

    async def run(self, started: asyncio.Future[None]) -> None:
        """Keep the stages running until cancelled.  `started` is told of the first start, which alone may fail."""
        self._started, pause = started, RestartPause()
        try:
            while True:
                why = await self._live()
                if not started.done():
                    started.set_exception(EngineError("engine_failed", why))
                    return
                self.restarts += 1
                wait_s = pause.after(self._useful)
                log.error("replica %d: %s; restart %d in %.1f s", self.index, why, self.restarts, wait_s)
                await asyncio.sleep(wait_s)
        finally:
            started.cancel()

    def submit(self, request: Submit) -> EngineStream:
        """Begin to speak a segment; only while it is ready."""
        stream = EngineStream(self, request)
        self._streams[request.stream_id] = stream
        self.send(0, request)
        return stream

    async def encode(self, request: Encode) -> np.ndarray:
        """The codes of a recording; only while it is ready.  Raises EngineError."""
        future = self._encodes[request.request_id] = asyncio.get_running_loop().create_future()
        self.send(1, request)
        try:
            return await future
        finally:
            if self._encodes.pop(request.request_id).cancelled():  # nobody waits any more
                self.send(1, Cancel(request.request_id))

    def send(self, stage_id: int, message: object) -> None:
        """Hand a message to a stage; without effect while that stage is down, for its streams have failed already."""
        for worker in self._workers:
            worker.send(stage_id, message)

    def forget(self, stream: EngineStream) -> bool:
        """Drop a stream from the books -> whether it was still there."""
        return self._streams.pop(stream.request.stream_id, None) is not None

    def kill(self) -> None:
        """End the processes at once, without waiting for it."""
        for worker in self._workers:
            worker.kill()

    async def _live(self) -> str:
        """From the start of the stages to the end of one of them -> why it ended."""
        self._over = asyncio.get_running_loop().create_future()
        self._silence, self._useful = Silence(), False
        groups = [(0,), (1,)] if self._deploy.stage_placement == "processes" else [(0, 1)]
        self._workers = [StageProcess(group, self._receive) for group in groups]
        connector, watching = None, []
        try:
            connector = SharedMemoryConnector.create(self._deploy.connector.get_sleep_s)
            for worker in self._workers:
                await worker.start(connector.fds, self._arguments)
                for stage_id in worker.stage_ids:
                    self._receive(Beat(stage_id, STARTING_S))
                watching.append(asyncio.create_task(self._watch_exit(worker), name="stage exit"))
            watching.append(asyncio.create_task(self._watch_silence(), name="stage silence"))
            return await self._over
        except OSError as error:
            return f"the stages cannot be started: {error}"
        finally:
            for task in watching:
                task.cancel()
            await self._end()
            if connector is not None:
                connector.close()

    async def _end(self) -> None:
        """Fail the streams and end the processes: at once, but stages that are well may end by themselves."""
        kill = self._over.done() or not self.ready
        self._ready.clear()
        self._devices = {}
        streams, self._streams = list(self._streams.values()), {}
        for stream in streams:
            stream.deliver(_ended())
        for future in self._encodes.values():
            if not future.done():
                future.set_exception(_ended())
        workers, self._workers = self._workers, []
        await asyncio.gather(*(worker.stop(kill) for worker in workers))
        self._reports = {}

    def _broken(self, why: str) -> None:
        """This life of the stages is over."""
        if not self._over.done():
            self._over.set_result(why)

    async def _watch_exit(self, worker: StageProcess) -> None:
        status = await worker.wait()
        names = " and ".join(map(str, worker.stage_ids))
        self._broken(f"the process of stage {names} ended with status {status}")

    async def _watch_silence(self) -> None:
        clock = asyncio.get_running_loop().time
        while (stage_id := self._silence.look(clock())) is None:
            await asyncio.sleep(_LOOK_S)
        doing = "hangs" if stage_id in self._devices else "does not come to an end of loading"
        self._broken(f"stage {stage_id} {doing}: it was not heard for longer than it said")

    def _receive(self, message: object) -> None:
        match message:
            case Beat():
                self._silence.heard(message, asyncio.get_running_loop().time())
            case StageReady():
                self._stage_ready(message)
            case StageStopped(reason=reason):
                self._broken(reason)
            case ARReport() | CodecReport():
                self._reports[type(message)] = message
                self._on_report(message)
            case Encoded(request_id=request_id, codes=codes):
                self._answer(request_id, codes)
            case EncodeFailed(request_id=request_id, message=text):
                self._answer(request_id, EngineError("engine_failed", text))
            case Failed(stream_id=stream_id, code=code, message=text):
                self.send(0, Cancel(stream_id))  # whichever stage failed it, the other one drops it too
                self.send(1, Cancel(stream_id))
                self._deliver(stream_id, EngineError(code, text))
            case _:
                self._deliver(message.stream_id, message)

    def _stage_ready(self, message: StageReady) -> None:
        self.info = message.model
        self._devices[message.stage_id] = message.device
        if len(self._devices) == 2:
            self._ready.set()
            if not self._started.done():
                self._started.set_result(None)

    def _answer(self, request_id: int, answer: np.ndarray | EngineError) -> None:
        """Of an `encode` for which someone may wait no more."""
        future = self._encodes.get(request_id)
        if future is None or future.done():
            return
        if isinstance(answer, EngineError):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def _deliver(self, stream_id: int, message: object) -> None:
        stream = self._streams.get(stream_id)
        if stream is not None and stream.deliver(message):
            self._streams.pop(stream_id)
            self._useful |= stream.finished is not None


def _ended() -> EngineError:
    """What those are told who needed stages that are gone; new ones are on their way."""
    return EngineError("engine_failed", "a stage of the engine has ended", retry=True)
