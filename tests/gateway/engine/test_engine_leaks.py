"""Many short sessions that end in all kinds of ways, with the real stages: afterwards all is as it was before."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import pytest
from real_engine import OURS, deploy_file
from running_gateway import RunningGateway, running
from stream_client import StreamClient
from websockets.exceptions import InvalidStatus

from gateway.engine.engine import Engine
from gateway.settings import Settings
from inference.messages import ARReport

AT_ONCE = 6
PATIENCE_S = 120.0
GATEWAY_GROWTH, STAGE_GROWTH = 48 << 20, 96 << 20  # bytes that buffers, caches and the allocator's arenas may take
TEXTS = ("Hello there.", "One, two, three. Four, five.", "This one is a little longer than the others, and ends late.")
HOW = ("done", "done", "cancel", "cancel at once", "reset", "close", "error")
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a RST


@dataclass(frozen=True)
class Footprint:
    """What the gateway and its stages hold."""

    processes: int
    tasks: Counter[str]
    files: int
    stage_files: tuple[int, ...]
    shared: frozenset[str]
    memory: int
    stage_memory: tuple[int, ...]

    @classmethod
    def of(cls, engine: Engine) -> Footprint:
        """Now."""
        own = psutil.Process()
        stages = [psutil.Process(pid) for pid in engine.replicas[0].pids]
        return cls(
            len(own.children()),
            Counter(task.get_name().split()[0] for task in asyncio.all_tasks() if task is not asyncio.current_task()),
            own.num_fds(),
            tuple(stage.num_fds() for stage in stages),
            frozenset(os.listdir("/dev/shm")),
            own.memory_info().rss,
            tuple(stage.memory_info().rss for stage in stages),
        )

    def same_as(self, before: Footprint) -> bool:
        """Nothing more is held, memory apart."""
        names = ("processes", "tasks", "files", "stage_files", "shared")
        return all(getattr(self, name) == getattr(before, name) for name in names)


@pytest.mark.parametrize(
    ("embedded", "sessions", "kills"),
    [(False, 40, 1), pytest.param(True, 500, 6, marks=pytest.mark.slow)],
    ids=["40", "500 with the embedded voice"],
)
async def test_nothing_is_left_of_sessions_that_ended_in_any_way(directory, tmp_path, embedded, sessions, kills):
    file = deploy_file(tmp_path / "deploy.yaml", OURS, ignore_eos=not embedded)
    engine = Engine(None if embedded else str(directory), file, "cpu", "warning")
    await engine.start()
    async with running(engine, Settings()) as gateway:
        await _sessions(gateway, iter(["done"] * 10))
        before = await _settled(gateway)
        rng = random.Random(1)
        ends = await _sessions(gateway, _mixture(engine, rng, sessions, kills))
        assert ends.total() == sessions and ends["session.done"] and ends["input.cancelled"] and ends["gone"], ends
        assert engine.restarts == kills, "a stage ended that nobody killed"
        await _sessions(gateway, iter(["done"] * 10))
        after = await _settled(gateway, before)
        assert after.same_as(before), (before, after)
        assert after.memory - before.memory < GATEWAY_GROWTH
        for stage, begin in zip(after.stage_memory, before.stage_memory, strict=True):
            assert stage - begin < STAGE_GROWTH
        assert engine.listeners == 0 and engine.replicas[0].streams == 0


def _mixture(engine: Engine, rng: random.Random, sessions: int, kills: int) -> Iterator[str]:
    """How each session is to end; a stage is killed before some of them."""
    killed_before = {(number + 1) * sessions // (kills + 1) for number in range(kills)}
    for number in range(sessions):
        if number in killed_before:
            assert engine.ready, "the kills are too close to each other"
            os.kill(rng.choice(engine.replicas[0].pids), signal.SIGKILL)
        yield rng.choice(HOW)


async def _sessions(gateway: RunningGateway, ways: Iterator[str]) -> Counter[str]:
    """So many at once -> how they ended: a type of message, an error's code, or gone."""
    ends: Counter[str] = Counter()

    async def work(worker: int) -> None:
        rng = random.Random(worker)
        for how in ways:
            ends[await _session(gateway, how, rng)] += 1

    async with asyncio.timeout(PATIENCE_S + 900), asyncio.TaskGroup() as tasks:
        for worker in range(AT_ONCE):
            tasks.create_task(work(worker), name=f"client {worker}")
    return ends


async def _session(gateway: RunningGateway, how: str, rng: random.Random) -> str:
    async with await _connected(gateway) as client:
        await client.say("session.config", max_new_tokens=rng.randint(1, 60))
        await client.say("input.text", text=rng.choice(TEXTS))
        if how == "done":
            await client.say("input.done")
            return _end((await client.whole("_0")).end)
        if how == "cancel at once":
            await client.say("input.cancel")
            return _end((await client.whole("_0")).end)
        await client.say("input.done")
        while "_0" not in client.contexts and rng.random() < 0.9:
            await client.receive()
        if how == "cancel" and not client.is_over("_0"):
            await client.say("input.cancel")
            return _end((await client.whole("_0")).end)
        if how == "error":
            await client.say("input.text", text=5)
            await client.until("error")
        if how == "reset":
            client.socket.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            client.socket.transport.abort()
        return "gone"


def _end(message: dict) -> str:
    return message["code"] if message["type"] == "error" else message["type"]


async def _connected(gateway: RunningGateway) -> StreamClient:
    """Once the engine can speak."""
    while True:
        async with asyncio.timeout(PATIENCE_S):
            await gateway.engine.replicas[0].wait_ready()
        try:
            return await gateway.client()
        except InvalidStatus as refused:
            assert json.loads(refused.response.body)["error"]["code"] == "overloaded"


async def _settled(gateway: RunningGateway, like: Footprint | None = None) -> Footprint:
    """Once both stages say that they hold nothing, and, in time, nothing more is held than before."""
    engine = gateway.engine
    async with asyncio.timeout(PATIENCE_S):
        while not _idle(engine):
            await asyncio.sleep(0.05)
    for _ in range(100):
        if like is not None and Footprint.of(engine).same_as(like):
            break
        await asyncio.sleep(0.05)
    return Footprint.of(engine)


def _idle(engine: Engine) -> bool:
    """All KV slots are free, no stream waits or runs, no codec state is kept: as the stages report it."""
    reports = engine.latest_reports
    return len(reports) == 2 and all(
        not (report.slots_used or report.resident or report.waiting)
        if isinstance(report, ARReport)
        else not (report.streams or report.backlog_frames)
        for report in reports
    )
