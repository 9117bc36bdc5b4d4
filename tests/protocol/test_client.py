"""The Python client against the real gateway: speech, barge-in, flush, errors, lost connections, scripts."""

from __future__ import annotations

import asyncio
import json
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from protocol_session import Peer
from scripted_engine import FRAME_SAMPLES, ScriptedEngine, frames_for
from websockets.asyncio.server import ServerConnection, serve

from gateway.keys import ApiKeys
from gateway.server import shut_down
from gateway.settings import Settings
from protocol.client import (
    Client,
    ConnectError,
    ConnectionLost,
    ContextEnded,
    ContextFailed,
    ProtocolViolation,
    RefusedError,
    SpeechContext,
    connect,
    connect_sync,
)
from protocol.limits import Limits

PATIENCE_S = 20.0
TEXT = "The first sentence is a long one that is spoken. The second sentence is spoken after it, in time."
LONG = "This sentence is one of very many that are said. " * 400


@pytest.fixture(autouse=True)
async def no_task_is_left() -> AsyncIterator[None]:
    """Whatever a test does to its client."""
    yield
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith(("speech client", "say"))]


def url_of(gateway) -> str:
    return f"ws://127.0.0.1:{gateway.port}/v1/stream"


@asynccontextmanager
async def talking(gateway, **config: object) -> AsyncIterator[Client]:
    """A client whose test does not wait for ever."""
    async with asyncio.timeout(PATIENCE_S), connect(url_of(gateway), **config) as client:
        yield client


def spoken(engine: ScriptedEngine) -> list[str]:
    return [request.text for request in engine.submitted]


async def tokens(text: str = TEXT) -> AsyncIterator[str]:
    """As a language model sends them."""
    for start in range(0, len(text), 3):
        yield text[start : start + 3]


async def push(context: SpeechContext, text: str) -> None:
    await context.send(text)
    await context.done()


async def first_chunk(context: SpeechContext):
    return await anext(context)


async def test_it_tells_what_the_server_is(gateway):
    async with talking(gateway) as client:
        assert client.ready.model == "scripted" and client.ready.sample_rate == 44100
        assert [voice.name for voice in client.ready.voices] == ["ada", "bo"]
        assert client.ready.limits["text_characters"] == 8000


async def test_tokens_become_audio_with_positions(gateway):
    async with talking(gateway) as client:
        chunks = [chunk async for chunk in client.say(tokens(), voice="bo")]
    assert " ".join(spoken(gateway.engine)) == TEXT
    assert {request.voice for request in gateway.engine.submitted} == {"bo"}
    ends = np.cumsum([chunk.samples for chunk in chunks])
    assert [chunk.start for chunk in chunks] == [0, *ends[:-1]]
    assert ends[-1] == FRAME_SAMPLES * sum(map(frames_for, spoken(gateway.engine)))
    assert chunks[0].array.dtype == np.int16 and list(chunks[0].array[:3]) == [-10000, -9999, -9998]


async def test_text_is_pushed_while_audio_is_taken(gateway):
    async with talking(gateway, response_format="f32", sample_rate=16000) as client:
        context = client.context(seed=7)
        pushing = asyncio.create_task(push(context, TEXT))
        samples = np.concatenate([chunk.array async for chunk in context])
        await pushing
        assert samples.dtype == np.float32 and len(samples) == context.result.samples
        assert (context.result.reason, context.result.seed) == ("done", 7)
        assert context.result.usage["input_characters"] == len(TEXT) and context.result.metrics["rtf"] is not None
        assert context.heard() == (TEXT, "")
        early, late = context.heard(1000)
        assert early + late == TEXT and early and late
        with pytest.raises(ContextEnded):
            await context.send("more")


async def test_a_text_of_any_length_is_paced(gateway):
    async with talking(gateway) as client:
        assert sum([chunk.samples async for chunk in client.say(LONG)])
    assert " ".join(spoken(gateway.engine)) == LONG.strip()


async def test_more_contexts_than_the_server_takes_wait(run_gateway):
    limits = Limits(contexts=2)
    async with run_gateway(ScriptedEngine(), Settings(limits=limits)) as gateway, talking(gateway) as client:
        contexts = [client.context() for _ in range(5)]
        pushing = [asyncio.create_task(push(context, "Hello.")) for context in contexts]
        counts = [sum([chunk.samples async for chunk in context]) for context in contexts]
        await asyncio.gather(*pushing)
        assert counts == [frames_for("Hello.") * FRAME_SAMPLES] * 5


async def test_a_flush_returns_when_its_audio_is_sent(gateway):
    async with talking(gateway) as client:
        context = client.context()
        await context.send("half a wo")
        assert await context.flush() == frames_for("half a wo") * FRAME_SAMPLES
        assert await context.flush() == frames_for("half a wo") * FRAME_SAMPLES
        await push(context, "rd")
        assert (await first_chunk(context)).start == 0
        assert [chunk async for chunk in context][-1].start > 0
    assert spoken(gateway.engine) == ["half a wo", "rd"]


async def test_a_cancel_tells_how_far_it_came(run_gateway):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with (
        run_gateway(engine) as gateway,
        talking(gateway, initial_codec_chunk_frames=25) as client,
    ):
        context = client.context()
        await context.send(TEXT)
        await first_chunk(context)
        flushing = asyncio.create_task(context.flush())
        stopped = await context.cancel(playback_offset_ms=800)
        assert stopped.samples_sent == 25 * FRAME_SAMPLES
        assert stopped.text_spoken + stopped.text_remaining == TEXT and stopped.text_spoken == "The first "
        assert [chunk async for chunk in context] == []
        with pytest.raises(ContextEnded):
            await context.send("late")
        with pytest.raises(ContextEnded):
            await flushing
        assert await context.cancel() == stopped
        await engine.until(lambda: not engine.live)


async def test_a_cancel_accounts_for_text_that_was_not_sent(run_gateway):
    engine = ScriptedEngine()
    engine.gate.clear()
    async with run_gateway(engine) as gateway, talking(gateway) as client:
        context = client.context()
        sending = asyncio.create_task(context.send(LONG))
        await engine.until(lambda: engine.submitted)
        stopped = await context.cancel()
        assert (stopped.text_spoken, stopped.text_remaining) == ("", LONG)
        with pytest.raises(ContextEnded):
            await sending


async def test_a_cancel_before_the_first_text_needs_no_server(gateway):
    async with talking(gateway) as client:
        context = client.context()
        assert (await context.cancel()).text_remaining == ""
        assert [chunk async for chunk in context] == []


async def test_a_cancel_after_the_end_answers_from_the_record(gateway):
    async with talking(gateway) as client:
        context = client.context()
        await push(context, TEXT)
        samples = sum([chunk.samples async for chunk in context])
        stopped = await context.cancel(1000)
        assert stopped.samples_sent == samples and (stopped.text_spoken, stopped.text_remaining) == context.heard(1000)


async def test_a_cancelled_task_cancels_its_context(run_gateway):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, talking(gateway) as client:
        context = client.context()
        await context.send(TEXT)
        await first_chunk(context)
        waiting = asyncio.create_task(first_chunk(context))
        await asyncio.sleep(0)
        waiting.cancel()
        await engine.until(lambda: not engine.live and engine.cancelled)
        assert (await context.cancel()).text_remaining


async def test_leaving_the_iteration_cancels(run_gateway):
    engine = ScriptedEngine(speed=200)
    async with run_gateway(engine) as gateway, talking(gateway) as client:
        saying = client.say(TEXT)
        await anext(saying)
        await saying.aclose()
        await engine.until(lambda: not engine.live and engine.cancelled)


async def test_an_error_of_the_text_ends_the_speech(gateway):
    async def broken() -> AsyncIterator[str]:
        yield TEXT
        raise ValueError("the model has died")

    async with talking(gateway) as client:
        with pytest.raises(ValueError, match="the model has died"):
            async for _ in client.say(broken()):
                pass


async def test_refusals_are_told(gateway):
    with pytest.raises(RefusedError, match="sample_rate") as caught:
        await connect(url_of(gateway), sample_rate=12345)
    assert caught.value.code == "bad_value"
    async with talking(gateway) as client:
        with pytest.raises(ContextFailed) as failed:
            async for _ in client.say(TEXT, voice="nobody"):
                pass
        assert failed.value.code == "unknown_voice"
        with pytest.raises(RefusedError) as refused:
            async for _ in client.say(TEXT, seed=-1):
                pass
        assert refused.value.code == "bad_value"
        assert [chunk async for chunk in client.say("Hello.")]


async def test_a_failure_comes_after_the_audio_before_it(run_gateway):
    engine = ScriptedEngine(fail={"One sentence only.": (1, "engine_failed")})
    async with run_gateway(engine) as gateway, talking(gateway) as client:
        context = client.context()
        await push(context, "One sentence only.")
        assert (await first_chunk(context)).start == 0
        with pytest.raises(ContextFailed) as failed:
            await first_chunk(context)
        assert failed.value.code == "engine_failed" and context.result is None


async def test_there_must_be_a_gateway(gateway):
    with pytest.raises(ConnectError) as unreachable:
        await connect("ws://127.0.0.1:9/v1/stream")
    assert unreachable.value.code == "unreachable"
    with pytest.raises(ConnectError) as missing:
        await connect(f"ws://127.0.0.1:{gateway.port}/nowhere")
    assert missing.value.code == "not_found"


def cut(gateway) -> None:
    """The server's side of every connection breaks off."""
    for connection in list(gateway.runner.server.connections):
        connection.transport.abort()


async def test_what_was_not_spoken_is_said_on_a_new_connection(run_gateway):
    engine = ScriptedEngine()
    engine.gate.clear()
    async with run_gateway(engine) as gateway, talking(gateway) as client:
        context = client.context()
        pushing = asyncio.create_task(push(context, LONG))
        await engine.until(lambda: engine.submitted)
        cut(gateway)
        await engine.until(lambda: not engine.live)
        before = len(engine.submitted)
        engine.gate.set()
        assert [chunk async for chunk in context]
        await pushing
        assert context.result.reason == "done" and context.heard() == (LONG, "")
        assert " ".join(spoken(engine)[before:]) == LONG.strip()


async def test_what_was_spoken_in_part_is_not_said_again(run_gateway):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, talking(gateway) as client:
        context = client.context()
        await context.send(TEXT)
        await first_chunk(context)
        cut(gateway)
        with pytest.raises(ConnectionLost) as lost:
            await first_chunk(context)
        assert lost.value.code == "connection_lost"
        assert "".join(context.heard()) == TEXT
        engine.chunk_gate.set()
        assert [chunk async for chunk in client.say("Hello again.")]


async def test_a_client_that_was_closed_says_so(gateway):
    client = await connect(url_of(gateway))
    context = client.context()
    await client.close()
    with pytest.raises(ConnectionLost):
        await context.send("Hello.")
    with pytest.raises(ConnectionLost):
        client.context()


async def test_audio_that_nobody_takes_stops_the_reading(run_gateway):
    """A minute is held, and what the socket's buffers take; a cancel is answered all the same."""
    engine = ScriptedEngine(frames=lambda text: 1000 if len(text) > 1 else 2)
    async with run_gateway(engine) as gateway, talking(gateway, response_format="f32") as client:
        context = client.context()
        await push(context, TEXT * 20)
        await engine.until(lambda: any(not granted for _, granted in engine.credits))
        assert client._ahead_s() < 62
        assert (await context.cancel()).samples_sent > 60 * 44100


async def test_a_flush_is_answered_though_nobody_takes_its_audio(run_gateway):
    engine = ScriptedEngine(frames=lambda text: 1000 if len(text) > 1 else 2)
    async with run_gateway(engine) as gateway, talking(gateway, sample_rate=8000) as client:
        context = client.context()
        await context.send(TEXT * 4)
        assert await context.flush() > 120 * 8000
        await context.done()
        assert sum([chunk.samples async for chunk in context]) == context.result.samples


async def test_a_server_that_ends_says_why(run_gateway):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, talking(gateway) as client:
        context = client.context()
        await context.send(TEXT)
        await first_chunk(context)
        await shut_down(gateway.runner.app)
        with pytest.raises(ContextFailed) as failed:
            await first_chunk(context)
        assert failed.value.code == "shutting_down"


async def test_a_key_is_sent_and_a_wrong_one_refused(run_gateway):
    settings = Settings(keys=ApiKeys({"someone": "right"}))
    async with run_gateway(ScriptedEngine(), settings) as gateway:
        async with talking(gateway, api_key="right") as client:
            assert [chunk async for chunk in client.say("Hello.")]
        for key in ("wrong", None):
            with pytest.raises(ConnectError) as refused:
                await connect(url_of(gateway), api_key=key)
            assert refused.value.code == "unauthorized" and "wrong" not in str(refused.value)


async def test_a_server_that_breaks_the_protocol_is_left():
    ready = Peer().ready
    configured = {"type": "session.configured", "config": ready["config"]}

    async def serve_nonsense(socket: ServerConnection) -> None:
        await socket.send(json.dumps(ready))
        await socket.recv()
        await socket.send(json.dumps(configured))
        await socket.recv()
        await socket.send(bytes(100))
        await socket.wait_closed()

    async with asyncio.timeout(PATIENCE_S), serve(serve_nonsense, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}") as client:
            with pytest.raises(ProtocolViolation):
                async for _ in client.say("Hello."):
                    pass
            with pytest.raises(ProtocolViolation):
                client.context()


async def test_a_connection_that_was_idle_too_long_is_renewed(run_gateway):
    settings = Settings(limits=Limits(idle_s=0.05), tick_s=0.01)
    async with run_gateway(ScriptedEngine(), settings) as gateway, talking(gateway) as client:
        first = client.ready.session_id
        await client._link.changed.until(lambda: not client._session.configured)
        assert [chunk async for chunk in client.say("Hello.")]
        assert client.ready.session_id != first


async def test_what_cannot_be_said_is_refused_at_once(gateway):
    with pytest.raises(TypeError):
        connect(url_of(gateway), voice=object())
    with pytest.raises(TypeError, match="framing"):
        connect(url_of(gateway), framing="bare")
    async with talking(gateway) as client:
        with pytest.raises(TypeError):
            client.context(seed=2**70)
        context = client.context()
        for offset in (-1, float("nan"), 1e10):
            with pytest.raises(ValueError, match="playback_offset_ms"):
                await context.cancel(offset)
        await push(context, "Hello.")
        assert [chunk async for chunk in context]


async def test_without_a_server_the_attempts_end(run_gateway, monkeypatch):
    monkeypatch.setattr("protocol.client_connection._FIRST_RETRY_S", 0.01)
    async with run_gateway(ScriptedEngine()) as gateway, talking(gateway) as client:
        await shut_down(gateway.runner.app)
        await gateway.runner.cleanup()
        with pytest.raises(ConnectError) as unreachable:
            async for _ in client.say("Hello."):
                pass
        assert unreachable.value.code == "unreachable"


async def test_random_barge_in_leaves_nothing(run_gateway):
    """Cancelled after any number of turns of the loop: the answer accounts for all text, and no stream stays."""
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, talking(gateway) as client:
        for turns in range(60):
            context = client.context()
            pushing = asyncio.create_task(push(context, TEXT))
            for _ in range(turns):
                await asyncio.sleep(0)
            stopped = await context.cancel()
            (pushed,) = await asyncio.gather(pushing, return_exceptions=True)
            assert pushed is None or isinstance(pushed, ContextEnded)
            assert stopped.text_spoken + stopped.text_remaining == (TEXT if turns else "")
            assert [chunk async for chunk in context] == []
        await engine.until(lambda: not engine.live)


def speak_in_script(url: str, found: dict) -> None:
    def pieces() -> Iterator[str]:
        yield from TEXT.split(" ")

    with connect_sync(url, sample_rate=8000) as client:
        found["model"] = client.ready.model
        found["pieces"] = sum(chunk.samples for chunk in client.say(word + " " for word in pieces()))
        context = client.context(voice="bo")
        context.send("half a wo")
        found["flush"] = context.flush()
        context.done()
        found["samples"] = sum(chunk.samples for chunk in context)
        found["result"], found["heard"] = context.result, context.heard(0)
        stopped = client.context()
        stopped.send("never mind")
        found["stopped"] = stopped.cancel()
        try:
            list(client.say("x", voice="nobody"))
        except ContextFailed as error:
            found["error"] = error.code


async def test_a_script_needs_no_loop(gateway):
    found: dict = {}
    await asyncio.to_thread(speak_in_script, url_of(gateway), found)
    assert found["model"] == "scripted" and found["pieces"] > 0
    assert found["flush"] == found["samples"] == found["result"].samples
    assert found["heard"] == ("", "half a wo")
    assert found["stopped"].text_remaining == "never mind" and found["error"] == "unknown_voice"
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("speech")]


async def test_nothing_holds_on_to_contexts(gateway):
    async with talking(gateway) as client:
        context = client.context()
        await push(context, "Hello.")
        assert [chunk async for chunk in context]
        gone = weakref.ref(context._core)
        del context
        assert gone() is None or not gone().chunks
        assert not client._link.session.contexts
