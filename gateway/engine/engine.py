"""What the gateway talks to in order to have text spoken: the replicas of the model, each listener on one of them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gateway.engine.replica import Replica, ReplicaState
from gateway.engine.stream import EngineError, EngineStream
from inference.deploy import load_deploy_config
from inference.messages import Encode, Keep, ModelInfo, Reference, Release, StageReport, Submit

log = logging.getLogger("audio8.engine")


class Engine:
    """All replicas.  A listener's segments go to one of them, which is the least loaded when the first one comes."""

    def __init__(self, model: str | None, deploy_config: Path, device: str = "auto", log_level: str = "info") -> None:
        """Raises DeployConfigError."""
        self.deploy = load_deploy_config(deploy_config)
        arguments = ["--deploy-config", str(deploy_config), "--device", device, "--log-level", log_level]
        if model is not None:
            arguments += ["--model", model]
        self.on_report: Callable[[StageReport], None] = _ignore  # called with each report of a stage
        self.replicas = tuple(
            Replica(index, self.deploy, arguments, lambda report: self.on_report(report))
            for index in range(self.deploy.replicas)
        )
        self._ids, self._listeners = itertools.count(1), itertools.count(1)
        self._homes: dict[int, Replica] = {}  # of the listeners that were not released
        self._running: list[asyncio.Task[None]] = []

    @property
    def ready(self) -> bool:
        """At least one replica can speak."""
        return any(replica.ready for replica in self.replicas)

    @property
    def info(self) -> ModelInfo | None:
        """The model; None before it has been loaded."""
        return next((replica.info for replica in self.replicas if replica.info is not None), None)

    @property
    def restarts(self) -> int:
        """How often stages were started anew."""
        return sum(replica.restarts for replica in self.replicas)

    @property
    def states(self) -> list[ReplicaState]:
        """What is up, and where."""
        return [replica.state for replica in self.replicas]

    @property
    def listeners(self) -> int:
        """Contexts that have spoken and were not released."""
        return len(self._homes)

    @property
    def latest_reports(self) -> list[StageReport]:
        """What each stage that is running has reported last."""
        return [report for replica in self.replicas for report in replica.latest_reports]

    async def start(self) -> None:
        """Start all stages and wait until they can speak.  Raises EngineError, with none left, if one cannot start."""
        started = [asyncio.get_running_loop().create_future() for _ in self.replicas]
        self._running = [
            asyncio.create_task(replica.run(future), name=f"replica {replica.index}")
            for replica, future in zip(self.replicas, started, strict=True)
        ]
        try:
            await asyncio.gather(*started)
        except EngineError:
            await self.close()
            raise
        self._tell_devices()

    async def close(self) -> None:
        """End the stages.  Streams that are left fail."""
        for task in self._running:
            task.cancel()
        for task in self._running:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def kill(self) -> None:
        """End the processes of the stages at once: this one is about to end without `close`."""
        for replica in self.replicas:
            replica.kill()

    def next_stream_id(self) -> int:
        """Unique for the life of the process."""
        return next(self._ids)

    def next_listener(self) -> int:
        """A context's number, unique for the life of the process."""
        return next(self._listeners)

    def submit(self, request: Submit) -> EngineStream:
        """Begin to speak a segment.  Raises EngineError while no replica can."""
        home = self._homes.get(request.listener)
        if home is None or not home.ready:
            home = self._homes[request.listener] = self._least_loaded()
        return home.submit(request)

    async def encode(self, samples: np.ndarray) -> np.ndarray:
        """A recording, float32 [n] at the model's rate, as codes, uint16 [num_codebooks, frames], which all replicas
        know how to read.  Raises EngineError."""
        return await self._least_loaded().encode(Encode(self.next_stream_id(), samples))

    def keep(self, reference: Reference) -> None:
        """A voice that is likely to be asked for: its first listener shall wait no longer than later ones."""
        for replica in self.replicas:
            replica.send(0, Keep(reference))

    def release(self, listener: int) -> None:
        """The context needs no more speech: its share of the engine is free."""
        home = self._homes.pop(listener, None)
        if home is not None:
            home.send(0, Release(listener))

    def _least_loaded(self) -> Replica:
        """Of those that can speak the one with the fewest listeners, then streams."""
        up = [replica for replica in self.replicas if replica.ready]
        if not up:
            raise EngineError("engine_failed", "the engine is starting, ask again in a moment", retry=True)
        listeners = Counter(home.index for home in self._homes.values())
        return min(up, key=lambda replica: (listeners[replica.index], replica.streams))

    def _tell_devices(self) -> None:
        """One line: which stage runs where."""
        stages = (
            f"replica {replica.index} stage {stage_id} (devices id {wanted.device_ids[replica.index]}) on {device}"
            for replica in self.replicas
            for (stage_id, device), wanted in zip(
                sorted(replica.state.devices.items()), (self.deploy.ar, self.deploy.codec), strict=True
            )
        )
        log.info("the engine can speak: %s", ", ".join(stages))


def _ignore(_: StageReport) -> None:
    """Until someone wants to know."""
