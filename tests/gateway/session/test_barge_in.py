"""A thousand barge-ins at any moment: the fence holds, the text is accounted for, and nothing is left in the engine."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import asynccontextmanager

import numpy as np
import pytest
from barge_in import AFTERWARDS, Interrupter, Journal, check
from running_gateway import running
from scripted_engine import ScriptedEngine, ramp
from stream_client import slow_socket

from gateway.assets import DEPLOY_CONFIG
from gateway.engine.engine import Engine
from gateway.server import settings_from
from protocol.framing import HEADER_BYTES

HOLDS = ("nothing", "queued", "generated", "between chunks", "behind another", "ended")
ROUNDS = 100  # of a connection
SMALL_CHUNKS = {"framing": "header", "initial_codec_chunk_frames": 1, "codec_chunk_frames": 6}


def _holder(engine: ScriptedEngine) -> Callable[[str], Callable[[], object]]:
    def hold(kind: str) -> Callable[[], object]:
        gates = {"queued": engine.gate, "between chunks": engine.chunk_gate}
        if kind == "generated":
            return engine.hold_audio().set
        gate = gates.get(kind, asyncio.Event())
        gate.clear()
        return gate.set

    return hold


def _expected(start: int, samples: int) -> np.ndarray:
    return np.rint(ramp(start, samples) * 32767).astype(np.int16)


def _turns(rng: random.Random) -> Callable[[], object]:
    async def moment() -> None:
        for _ in range(rng.choice([0, 1, 3, 10, 30, 100])):
            await asyncio.sleep(0)

    return moment


@pytest.mark.parametrize("seed", range(8))
async def test_barge_in_at_any_moment(run_gateway, seed):
    await _interrupt(run_gateway, seed, HOLDS, ROUNDS)


@pytest.mark.parametrize("seed", range(8, 12))
async def test_barge_in_while_the_socket_is_full(run_gateway, seed):
    await _interrupt(run_gateway, seed, ("not reading", *HOLDS), ROUNDS // 2, slow=True)


async def _interrupt(run_gateway, seed: int, holds: tuple[str, ...], rounds: int, slow: bool = False) -> None:
    engine, rng = ScriptedEngine(frames=len), random.Random(seed)
    async with run_gateway(engine) as gateway:
        options = {"sock": slow_socket(gateway.port), "max_queue": 1} if slow else {}
        async with await Journal.open(gateway.port, **options) as client:
            await client.say("session.config", **SMALL_CHUNKS)
            interrupter = Interrupter(client, rng, holds, _holder(engine), _turns(rng))
            tasks = len(asyncio.all_tasks())
            for _ in range(rounds):
                await interrupter.round()
                assert not engine.live, "a cancelled stream goes on"
            await client.pong()
            cancelled = check(client.log, interrupter.said, _expected)
            assert cancelled > rounds / 2
            assert len(asyncio.all_tasks()) <= tasks
    asked = [request.stream_id for request in engine.submitted]
    assert sorted(engine.completed + engine.cancelled) == asked, "stage 0 was not told, or told twice"
    assert sorted(engine.released) == list(range(1, len(interrupter.said) + 1)), "a listener is still waited for"


def _samples(messages: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(message[HEADER_BYTES:] for message in messages), "<i2").astype(int)


@asynccontextmanager
async def _embedded_voice():
    engine = Engine(None, DEPLOY_CONFIG, "cpu", "warning")
    await engine.start()
    async with running(engine, settings_from(engine.deploy)) as gateway:
        yield engine, gateway.port


@pytest.mark.slow
async def test_barge_in_with_the_embedded_voice():
    """What comes after an interruption sounds as if there had been none: the same samples, to one 16-bit step."""
    rng = random.Random(0)

    async def moment() -> None:
        await asyncio.sleep(rng.choice([0, 0.01, 0.1, 0.5, 1.0]) * rng.random())

    async with _embedded_voice() as (engine, port), await Journal.open(port) as client:
        await client.say("session.config", framing="header")
        interrupter = Interrupter(client, rng, ("nothing", "behind another", "ended"), lambda _: lambda: None, moment)
        for _ in range(100):
            await interrupter.round()
        await client.pong()
        assert check(client.log, interrupter.said, None) > 50
        assert engine.restarts == 0
        afterwards = [name for name, said in interrupter.said.items() if said.text == AFTERWARDS]
        heard = [_samples(client.contexts[name].chunks) for name in afterwards]
    assert len(heard) == 100 and heard[0].any()
    for samples in heard[1:]:
        assert np.abs(samples - heard[0]).max() <= 1
