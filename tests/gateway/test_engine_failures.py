"""What ends a stage, by whatever means: its streams are told soon, and the engine speaks again."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest
from real_engine import EXTRA, heard, submit

from gateway.engine import Engine
from gateway.engine_stream import EngineError, EngineStream

SOON_S = 2.0
RESTART_S = 60.0
SHORT_WAITS = {f"{EXTRA}connector_get_max_wait": 120, f"{EXTRA}connector_get_max_wait_first_chunk": 200}  # 1.2 s, 2 s
WAIT_S, FIRST_WAIT_S = 1.2, 2.0


async def fails(stream: EngineStream, within_s: float) -> str:
    """The code with which a stream ends in time."""
    async with asyncio.timeout(within_s):
        with pytest.raises(EngineError) as error:
            async for _ in stream:
                pass
    return error.value.code


async def speaks_again(engine: Engine, restarts: int) -> float:
    """Not ready, then ready, and a new stream is spoken -> seconds until ready."""
    begin = time.monotonic()
    assert not engine.ready and not any(state.ready for state in engine.states)
    with pytest.raises(EngineError) as error:
        submit(engine, 4)
    assert error.value.code == "engine_failed"
    async with asyncio.timeout(RESTART_S):
        await engine.replicas[0].wait_ready()
    took = time.monotonic() - begin
    assert (await heard(submit(engine, 4)))[0] == [4]
    assert engine.restarts == restarts and len(engine.states[0].devices) == 2
    return took


async def speaking(engine: Engine, count: int = 3) -> list[EngineStream]:
    """Long streams, of which the first has been heard."""
    streams = [submit(engine, 1500, seed) for seed in range(count)]
    await anext(aiter(streams[0]))
    return streams


async def test_killed_and_hanging_stages_fail_their_streams_and_come_back(engine):
    spoken = engine(**SHORT_WAITS)
    await spoken.start()
    try:
        for restarts, (stage, number) in enumerate(CASES, start=1):
            streams = await speaking(spoken)
            killed = spoken.replicas[0].pids
            os.kill(killed[stage], number)
            within = SOON_S if number == signal.SIGKILL else WAIT_S + SOON_S
            codes = await asyncio.gather(*(fails(stream, within) for stream in streams))
            assert set(codes) <= ({"engine_failed"} if number == signal.SIGKILL else {"engine_failed", "stage_timeout"})
            async with asyncio.timeout(SOON_S):
                while spoken.ready:
                    await asyncio.sleep(0.01)
            await speaks_again(spoken, restarts)
            assert not any(map(alive, killed))
    finally:
        await spoken.close()


CASES = [(0, signal.SIGKILL), (1, signal.SIGKILL), (0, signal.SIGSTOP), (1, signal.SIGSTOP)]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_stage_that_stops_for_a_moment_loses_nothing(engine):
    spoken = engine(**SHORT_WAITS)
    await spoken.start()
    try:
        before = await heard(submit(spoken, 120))
        for pid in spoken.replicas[0].pids:
            stream = submit(spoken, 120)
            await anext(aiter(stream))
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(WAIT_S / 2)
            os.kill(pid, signal.SIGCONT)
            rest = [chunk.samples async for chunk in stream]
            assert sum(map(len, rest)) + 4 * 2048 == len(before[1])
        assert spoken.restarts == 0
    finally:
        await spoken.close()
