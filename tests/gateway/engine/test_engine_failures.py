"""What ends a stage, by whatever means: its streams are told soon, and the engine speaks again.

All tests share one engine with short time-outs; most end it, and leave it able to speak.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from real_engine import EXTRA, PUBLISHED, deploy_file, heard, submit

from gateway.engine.engine import Engine
from gateway.engine.stream import EngineError, EngineStream
from inference.ring import HEADER

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOON_S = 2.0
RESTART_S = 60.0
WAIT_S = 1.2
SHORT_WAITS = {f"{EXTRA}connector_get_max_wait": 120, f"{EXTRA}connector_get_max_wait_first_chunk": 200}
ENGINE_FAILED, STAGE_TIMEOUT = "engine_failed", "stage_timeout"
Harm = Callable[[Engine], None]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def spoken(directory, tmp_path_factory) -> AsyncIterator[Engine]:
    """The engine, which can speak."""
    file = deploy_file(tmp_path_factory.mktemp("deploy") / "deploy.yaml", PUBLISHED, **SHORT_WAITS)
    async with running(Engine(str(directory), file, "cpu", "warning")) as engine:
        yield engine


@asynccontextmanager
async def running(engine: Engine) -> AsyncIterator[Engine]:
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


async def code_of(stream: EngineStream, within_s: float) -> str:
    """With which it ends, in time."""
    async with asyncio.timeout(within_s):
        with pytest.raises(EngineError) as error:
            async for _ in stream:
                pass
    return error.value.code


async def falls_and_rises(engine: Engine, harm: Harm, within_s: float) -> set[str]:
    """Harm it while it speaks: the streams end in time, it tells that it is down, and speaks again -> their codes."""
    restarts, processes = engine.restarts, [psutil.Process(pid) for pid in engine.replicas[0].pids]
    streams = [submit(engine, 1500, seed) for seed in range(3)]
    await anext(aiter(streams[0]))
    harm(engine)
    codes = await asyncio.gather(*(code_of(stream, within_s) for stream in streams))
    async with asyncio.timeout(within_s):
        while engine.ready:
            await asyncio.sleep(0.01)
    with pytest.raises(EngineError) as error:
        submit(engine, 4)
    assert error.value.code == ENGINE_FAILED
    begin = time.monotonic()
    async with asyncio.timeout(RESTART_S):
        await engine.replicas[0].wait_ready()
    logging.info("ready again after %.1f s", time.monotonic() - begin)
    assert (await heard(submit(engine, 4)))[0] == [4]
    assert engine.restarts == restarts + 1 and len(engine.states[0].devices) == 2
    assert not any(process.is_running() for process in processes)
    return set(codes)


def signalled(stage: int, number: signal.Signals) -> Harm:
    def harm(engine: Engine) -> None:
        os.kill(engine.replicas[0].pids[stage], number)

    return harm


def memory_of(engine: Engine) -> Path:
    """The connector's memory, as a path to the file without a name."""
    for link in Path(f"/proc/{engine.replicas[0].pids[0]}/fd").iterdir():
        if link.stat().st_size > HEADER + (1 << 19) and "(deleted)" in os.readlink(link):
            return link
    raise AssertionError("the stage has no connector")


def overwritten(engine: Engine) -> None:
    """As if someone else wrote there: the position of the writer."""
    with memory_of(engine).open("r+b") as file:
        file.seek(64)
        file.write(b"\xff" * 7)


@pytest.mark.parametrize("stage", [0, pytest.param(1, marks=pytest.mark.slow)])
async def test_a_killed_stage(spoken, stage):
    assert await falls_and_rises(spoken, signalled(stage, signal.SIGKILL), SOON_S) == {ENGINE_FAILED}


@pytest.mark.parametrize("stage", [pytest.param(0, marks=pytest.mark.slow), 1])
async def test_a_stage_that_hangs(spoken, stage):
    """Stage 1 notices as well that stage 0 brings nothing, maybe first."""
    codes = await falls_and_rises(spoken, signalled(stage, signal.SIGSTOP), WAIT_S + SOON_S)
    assert codes <= {ENGINE_FAILED, STAGE_TIMEOUT}


@pytest.mark.slow
async def test_memory_that_was_cut_off(spoken):
    """Whoever touches it gets a SIGBUS.  Nobody outside can do this: the file has no name."""
    codes = await falls_and_rises(spoken, lambda engine: os.truncate(memory_of(engine), 0), SOON_S)
    assert codes == {ENGINE_FAILED}


@pytest.mark.slow
async def test_memory_that_was_overwritten(spoken):
    codes = await falls_and_rises(spoken, overwritten, WAIT_S + 2 * SOON_S)
    assert codes <= {ENGINE_FAILED, STAGE_TIMEOUT}


@pytest.mark.parametrize("stage", [pytest.param(0, marks=pytest.mark.slow), 1])
async def test_a_stage_that_stops_for_a_moment_loses_nothing(spoken, stage):
    restarts, (_, whole) = spoken.restarts, await heard(submit(spoken, 100))
    stream = submit(spoken, 100)
    first = await anext(aiter(stream))
    os.kill(spoken.replicas[0].pids[stage], signal.SIGSTOP)
    await asyncio.sleep(WAIT_S / 2)
    os.kill(spoken.replicas[0].pids[stage], signal.SIGCONT)
    rest = [chunk.samples async for chunk in stream]
    assert len(first.samples) + sum(map(len, rest)) == len(whole) and spoken.restarts == restarts


@pytest.mark.slow
async def test_a_decode_that_does_not_fit_into_memory_ends_its_stream_alone(directory, tmp_path):
    """The codec has room for a short whole decode, not for a long one."""
    file = deploy_file(tmp_path / "deploy.yaml", PUBLISHED, async_chunk=False, stages__0__max_num_streams=4)
    async with running(Engine(str(directory), file, "cpu", "critical")) as engine:
        codec = engine.replicas[0].pids[1]
        await heard(submit(engine, 30))
        limit = psutil.Process(codec).memory_info().vms + (32 << 20)
        resource.prlimit(codec, resource.RLIMIT_AS, (limit, limit))
        long, *short = [submit(engine, frames, seed) for seed, frames in enumerate((700, 30, 30, 30))]
        assert [sizes for sizes, _ in await asyncio.gather(*map(heard, short))] == [[30]] * 3
        assert await code_of(long, RESTART_S) == ENGINE_FAILED
        assert (await heard(submit(engine, 30)))[0] == [30] and engine.restarts == 0


@pytest.mark.slow
async def test_one_stage_of_two_in_a_process_breaks(directory, tmp_path):
    """The other one cannot go on alone: both start anew."""
    file = deploy_file(tmp_path / "deploy.yaml", PUBLISHED, stage_placement="threads", **SHORT_WAITS)
    async with running(Engine(str(directory), file, "cpu", "critical")) as engine:
        assert await falls_and_rises(engine, overwritten, WAIT_S + 2 * SOON_S) <= {ENGINE_FAILED, STAGE_TIMEOUT}


async def test_closing_does_not_wait_for_stages_that_load(directory, tmp_path):
    file = deploy_file(tmp_path / "deploy.yaml", PUBLISHED)
    engine = Engine(str(directory), file, "cpu", "warning")
    starting = asyncio.create_task(engine.start())
    async with asyncio.timeout(RESTART_S):
        while len(psutil.Process().children()) < 2 or len(engine.replicas[0].pids) < 2:
            await asyncio.sleep(0.01)
    processes = [psutil.Process(pid) for pid in engine.replicas[0].pids]
    async with asyncio.timeout(SOON_S):
        await engine.close()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not any(process.is_running() for process in processes)
