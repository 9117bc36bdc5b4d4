"""Barge-in, disconnects, failures, shutdown: whatever ends a context, it ends once, and nothing is left behind."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from clocks import Clock
from scripted_engine import FRAME_SAMPLES, ScriptedEngine
from websockets.exceptions import ConnectionClosed

from gateway.server import shut_down
from gateway.settings import Settings
from protocol.limits import Limits

TEXT = "The first sentence is a long one that is spoken. The second sentence is spoken after it, in time."


async def test_a_cancel_is_a_fence(run_gateway):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.say("session.config", initial_codec_chunk_frames=25)
        await client.say("input.text", text=TEXT, context_id="a")
        await client.until_audio()
        await client.say("input.flush", context_id="a")
        await client.say("input.cancel", context_id="a")
        cancelled = await client.until("input.cancelled", context_id="a")
        assert not engine.live and len(engine.cancelled) == 1
        engine.chunk_gate.set()
        await client.pong()
        assert client.contexts["a"].types == ["audio.start", "audio.segment", "audio", "input.cancelled"]
        assert cancelled["samples_sent"] == 25 * FRAME_SAMPLES
        assert cancelled["text_spoken"] + cancelled["text_remaining"] == TEXT
        assert TEXT.startswith(cancelled["text_spoken"]) and cancelled["text_spoken"] == "The first "
        await client.say("input.text", text="late text", context_id="a")
        await client.until("error", code="context_ended", about_context_id="a")
        await client.speak("Another.", context_id="b")
        assert (await client.whole("b")).audio


async def test_a_cancel_drops_what_waits_to_be_sent(run_gateway):
    """The second context has all its audio ready behind the first; none of it is ever sent."""
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.say("input.text", text="The first context does not end", context_id="a")
        await client.say("input.flush", context_id="a")
        await client.speak("Hi", context_id="b")
        await client.until_audio()
        await client.say("input.cancel", context_id="b")
        cancelled = await client.until("input.cancelled", context_id="b")
        assert (cancelled["samples_sent"], cancelled["text_spoken"]) == (0, "")
        engine.chunk_gate.set()
        await client.say("input.done", context_id="a")
        await client.whole("a")
        assert client.contexts["b"].types == ["input.cancelled"]


async def test_a_cancel_without_an_id_ends_all_in_opening_order(run_gateway):
    engine = ScriptedEngine()
    engine.gate.clear()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.say("input.text", text="unnamed")
        await client.say("input.text", text="named", context_id="a")
        await client.speak("draining", context_id="b")
        await client.say("input.cancel")
        names = [(await client.until("input.cancelled"))["context_id"] for _ in range(3)]
        assert names == ["_0", "a", "b"]
        await client.say("input.cancel")
        await client.say("input.cancel", context_id="never-seen")
        await client.pong()
    assert not client.others[:-1]


async def test_a_client_that_vanishes_frees_its_streams(run_gateway):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway:
        client = await gateway.client()
        await client.say("input.text", text=TEXT)
        await client.until_audio()
        client.socket.transport.abort()
        await engine.until(lambda: not engine.live)
        assert len(engine.cancelled) == 1


async def test_close_ends_the_contexts_and_then_the_socket(run_gateway):
    engine = ScriptedEngine()
    engine.gate.clear()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.speak(TEXT, context_id="a")
        await client.say("session.close")
        await client.until("input.cancelled", context_id="a")
        with pytest.raises(ConnectionClosed) as closed:
            await client.receive()
        assert closed.value.rcvd.code == 1000
        await engine.until(lambda: not engine.live)


async def test_what_was_made_before_a_failure_is_heard(run_gateway):
    engine = ScriptedEngine(fail={"This one fails.": (1, "stage_timeout")})
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.speak("This one fails.", context_id="a")
        heard = await client.whole("a")
        assert heard.types == ["audio.start", "audio.segment", "audio", "audio.done", "error"]
        assert heard.all("audio.done")[0]["error"] == heard.end["code"] == "stage_timeout"
        await client.speak("This one works.", context_id="b")
        assert (await client.whole("b")).end["type"] == "session.done"


async def test_a_failure_before_any_audio_does_not_wait_for_its_turn(run_gateway):
    engine = ScriptedEngine(fail={"This one fails.": (0, "engine_failed")})
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        held = engine.hold_audio()
        await client.speak("The one in front.", context_id="a")
        await client.speak("This one fails.", context_id="b")
        assert (await client.whole("b")).types == ["error"]
        held.set()
        assert (await client.whole("a")).end["type"] == "session.done"


async def test_a_fault_of_ours_ends_its_context_alone(run_gateway, caplog):
    """Samples that are none make the conversion raise: the client hears of a fault, the log holds it in full."""
    engine = ScriptedEngine(waveform=lambda first, count: np.array(["no sample"] * count))
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.speak("This one fails.", context_id="a")
        await client.say("input.text", text="Waits.", context_id="b")
        assert (await client.whole("a")).end["code"] == "internal"
        await client.say("input.cancel", context_id="b")
        assert (await client.whole("b")).types == ["input.cancelled"]
    assert "no sample" not in client.contexts["a"].end["message"]
    assert any(record.exc_info for record in caplog.records)


async def test_shutdown_while_a_client_is_leaving(run_gateway):
    """The socket is gone, its connection is being closed: there is nobody to tell."""
    engine = ScriptedEngine()
    engine.gate.clear()
    async with run_gateway(engine) as gateway:
        client = await gateway.client()
        await client.speak(TEXT)
        await engine.until(lambda: engine.submitted)
        client.socket.transport.abort()
        await engine.until(lambda: not engine.live)
        await shut_down(gateway.runner.app)


async def test_when_the_engine_dies_each_context_ends_once(run_gateway):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        for name in "abc":
            await client.speak(TEXT, context_id=name)
        await client.until_audio()
        engine.fail_all("a stage has ended")
        for name in "abc":
            heard = await client.whole(name)
            assert heard.end["code"] == "engine_failed" and len(heard.all("error")) == 1
        await client.speak(TEXT, context_id="d")
        assert (await client.whole("d")).end["code"] == "engine_failed"
        engine.ready = True
        engine.chunk_gate.set()
        await client.speak(TEXT, context_id="e")
        assert (await client.whole("e")).text == TEXT


async def test_shutdown_tells_every_context_and_closes(run_gateway):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.speak(TEXT, context_id="a")
        await client.say("input.text", text="waits", context_id="b")
        await client.until_audio()
        ending = asyncio.create_task(shut_down(gateway.runner.app))
        assert (await client.whole("a")).types[-2:] == ["audio.done", "error"]
        assert client.contexts["a"].end["code"] == "shutting_down"
        assert (await client.whole("b")).types == ["error"]
        await client.until("error", code="shutting_down", fatal=True)
        with pytest.raises(ConnectionClosed) as closed:
            await client.receive()
        assert closed.value.rcvd.code == 1012
        await ending
        assert not engine.live


async def test_too_many_contexts(run_gateway):
    settings = Settings(limits=Limits(contexts=2))
    engine = ScriptedEngine()
    engine.gate.clear()
    async with run_gateway(engine, settings) as gateway, await gateway.client() as client:
        for name in "abc":
            await client.speak("Hi.", context_id=name)
        assert (await client.whole("c")).end["code"] == "too_many_contexts"
        engine.gate.set()
        await client.whole("b")
        await client.speak("Hi.", context_id="d")
        assert (await client.whole("d")).audio


async def test_more_contexts_than_may_wait_are_told_so(run_gateway):
    settings = Settings(limits=Limits(waiting_contexts=2))
    engine = ScriptedEngine()
    engine.gate.clear()
    async with (
        run_gateway(engine, settings) as gateway,
        await gateway.client() as one,
        await gateway.client() as two,
        await gateway.client() as other,
    ):
        await one.speak("First.", context_id="a")
        await two.speak("Second.", context_id="b")
        await engine.until(lambda: len(engine.submitted) == 2)
        await other.speak("Third.", context_id="c")
        error = (await other.whole("c")).end
        assert error["code"] == "overloaded" and error["retry_after_ms"] > 0
        engine.gate.set()
        await two.whole("b")
        await other.speak("Again.", context_id="d")
        assert (await other.whole("d")).audio


async def test_a_context_without_messages_is_ended(run_gateway):
    clock = Clock()
    settings = Settings(tick_s=0.01)
    async with run_gateway(ScriptedEngine(), settings, clock=clock) as gateway, await gateway.client() as client:
        await client.say("input.text", text="Only this", context_id="a")
        await client.pong()
        clock.now += settings.limits.context_idle_s
        heard = await client.whole("a")
        assert heard.end["reason"] == "idle" and heard.text == "Only this"


async def test_an_idle_connection_is_closed(run_gateway):
    clock = Clock()
    settings = Settings(tick_s=0.01)
    async with run_gateway(ScriptedEngine(), settings, clock=clock) as gateway, await gateway.client() as client:
        clock.now += settings.limits.idle_s
        await client.until("error", code="idle_timeout", fatal=True)
        with pytest.raises(ConnectionClosed) as closed:
            await client.receive()
        assert closed.value.rcvd.code == 1008


async def test_a_silent_context_shows_signs_of_life(run_gateway):
    clock = Clock()
    engine = ScriptedEngine()
    engine.gate.clear()
    async with run_gateway(engine, Settings(tick_s=0.01), clock=clock) as gateway, await gateway.client() as client:
        await client.say("input.text", text="waiting", context_id="a")
        await client.speak("Waiting for its turn.", context_id="b")
        await client.say("input.text", text="The turn of one that may go on. And", context_id="c")
        await client.pong()
        clock.now += 2
        await client.until("session.progress", context_id="a", state="waiting_text")
        await client.until("session.progress", context_id="b", state="waiting_turn")
        await client.until("session.progress", context_id="c", state="waiting_turn")
        await client.say("input.text", text=" no more.", context_id="a")
        await client.say("input.done", context_id="a")
        await engine.until(lambda: len(engine.submitted) == 1)
        clock.now += 2
        await client.until("session.progress", context_id="a", state="queued", queue_position=0)
        engine.chunk_gate.clear()
        engine.gate.set()
        await client.until_audio()
        clock.now += 2
        await client.until("session.progress", context_id="a", state="generating")
        await client.until("session.progress", context_id="b", state="waiting_turn")
