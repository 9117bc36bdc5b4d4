"""Back-pressure: a slow reader pauses synthesis, one that has stopped loses its connection, others notice nothing."""

from __future__ import annotations

from contextlib import asynccontextmanager

import numpy as np
from scripted_engine import FRAME_SAMPLES, ScriptedEngine, ramp
from stream_client import StreamClient, slow_socket

from gateway.settings import Settings
from protocol.limits import Limits

SENTENCE = "This is a sentence of exactly sixty characters, count them. "
TEXT = SENTENCE * 20  # about 110 s of audio


@asynccontextmanager
async def slow_client(port):
    """Takes next to nothing from the network before it is read."""
    client = await StreamClient.open(port, sock=slow_socket(port), max_queue=1)
    try:
        yield client
    finally:
        client.socket.transport.abort()


async def test_a_slow_reader_pauses_synthesis_and_loses_nothing(run_gateway):
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, slow_client(gateway.port) as client:
        await client.speak(TEXT)
        await engine.until(lambda: any(not granted for _, granted in engine.credits))
        asked = len(engine.submitted)
        assert 30 * 44100 < sum(2 * len(r.text) for r in engine.submitted) * FRAME_SAMPLES < 50 * 44100
        heard = await client.whole("_0")
        assert len(engine.submitted) > asked
    spoken = [segment["spoken"] for segment in heard.all("audio.segment")]
    expected = np.concatenate([ramp(0, 2 * len(text) * FRAME_SAMPLES) for text in spoken])
    assert heard.text == TEXT
    assert np.array_equal(np.frombuffer(heard.audio, "<i2"), np.rint(expected * 32767))


async def test_another_client_goes_on_beside_a_slow_one(run_gateway):
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, slow_client(gateway.port) as slow, await gateway.client() as client:
        await slow.speak(TEXT)
        await engine.until(lambda: any(not granted for _, granted in engine.credits))
        await client.speak(SENTENCE)
        assert (await client.whole("_0")).end["reason"] == "done"


async def test_a_reader_that_has_stopped_is_cut_off(run_gateway):
    engine = ScriptedEngine()
    settings = Settings(limits=Limits(write_stall_s=0.2))
    async with run_gateway(engine, settings) as gateway, slow_client(gateway.port) as client:
        await client.speak(TEXT)
        await engine.until(lambda: engine.submitted and not engine.live and engine.cancelled)


async def test_later_contexts_never_starve_the_one_in_front(run_gateway):
    """Seven contexts wait behind a silent one, which speaks when its text comes, and then they do."""
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.say("input.text", text="The one in front", context_id="front")
        for number in range(7):
            await client.speak(SENTENCE * 5, context_id=f"later-{number}")
        await client.say("input.text", text=" speaks now. " + TEXT, context_id="front")
        await client.say("input.done", context_id="front")
        for name in ("front", *(f"later-{number}" for number in range(7))):
            assert (await client.whole(name)).end["reason"] == "done"


async def test_a_cancel_overtakes_what_waits(run_gateway):
    """The socket is stuck and thirty seconds wait: the fence comes after what was handed over, not after all."""
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, slow_client(gateway.port) as client:
        await client.speak(TEXT, context_id="a")
        await engine.until(lambda: any(not granted for _, granted in engine.credits))
        await client.say("input.cancel", context_id="a")
        cancelled = await client.until("input.cancelled", context_id="a")
        heard = client.contexts["a"]
        assert len(heard.audio) == 2 * cancelled["samples_sent"] < 2 * 10 * 44100
        assert not engine.live
        await client.pong()
        assert heard.end["type"] == "input.cancelled"
