"""A context holds its share of the engine for as long as more of it is to be generated, and no longer."""

from __future__ import annotations

import pytest
from scripted_engine import ScriptedEngine

TEXT = "This is one sentence. This is another one."


async def test_all_segments_of_a_context_are_one_listener_which_is_released_once(run_gateway):
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        for name in ("a", "b"):
            await client.speak(TEXT, context_id=name)
        for name in ("a", "b"):
            assert (await client.whole(name)).end["reason"] == "done"
    listeners = [request.listener for request in engine.submitted]
    assert len(listeners) > 2 == len(set(listeners))
    assert sorted(engine.released) == sorted(set(listeners))


async def test_the_share_is_free_before_the_audio_has_been_heard(run_gateway):
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        held = engine.hold_audio()
        await client.speak("This is one sentence.")
        await engine.until(lambda: engine.released)
        held.set()
        assert (await client.whole("_0")).end["reason"] == "done"


async def test_the_share_is_kept_while_more_text_may_come(run_gateway):
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.say("input.text", text="This is one sentence. This")
        await engine.until(lambda: engine.submitted and not engine.live)
        await client.pong()
        assert not engine.released
        await client.say("input.done")
        assert (await client.whole("_0")).end["reason"] == "done" and engine.released


@pytest.mark.parametrize("how", ["cancel", "disconnect"])
async def test_whoever_stops_listening_is_released(run_gateway, how):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.speak(TEXT, context_id="a")
        await engine.until(lambda: engine.submitted)
        if how == "cancel":
            await client.say("input.cancel", context_id="a")
        else:
            client.socket.transport.abort()
        await engine.until(lambda: engine.released)
    assert engine.released == [engine.submitted[0].listener]


async def test_a_context_that_fails_is_released(run_gateway):
    engine = ScriptedEngine(fail={"This is one sentence.": (1, "engine_failed")})
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.speak(TEXT)
        await engine.until(lambda: engine.released)
    assert engine.released == [engine.submitted[0].listener]


async def test_the_contexts_of_one_connection_have_one_share_between_them(run_gateway):
    """They are heard one after the other; when one of them is cancelled, the next one still waits for those before."""
    engine = ScriptedEngine()
    engine.gate.clear()
    async with run_gateway(engine) as gateway, await gateway.client() as client, await gateway.client() as other:
        for name in "abcdefgh":
            await client.speak(TEXT, context_id=name)
        await client.say("input.cancel", context_id="b")
        await client.until("input.cancelled")
        await other.speak(TEXT)
        await engine.until(lambda: len(engine.submitted) == 2)
        await client.pong()
        assert len(engine.submitted) == 2
        engine.gate.set()
        for name in "acdefgh":
            assert (await client.whole(name)).end["reason"] == "done"
        assert (await other.whole("_0")).end["reason"] == "done"
