"""The Python client against the real gateway: text in, audio out, flush."""

from __future__ import annotations

import asyncio
import weakref

import numpy as np
import pytest
from scripted_engine import FRAME_SAMPLES, ScriptedEngine, frames_for
from talking import (
    LONG,
    TEXT,
    first_chunk,
    no_task_is_left,  # noqa: F401
    push,
    spoken,
    talking,
    tokens,
)

from gateway.settings import Settings
from protocol.client import ContextEnded
from protocol.limits import Limits


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


async def test_a_flush_is_answered_though_nobody_takes_its_audio(run_gateway):
    engine = ScriptedEngine(frames=lambda text: 1000 if len(text) > 1 else 2)
    async with run_gateway(engine) as gateway, talking(gateway, sample_rate=8000) as client:
        context = client.context()
        await context.send(TEXT * 4)
        assert await context.flush() > 120 * 8000
        await context.done()
        assert sum([chunk.samples async for chunk in context]) == context.result.samples


async def test_audio_that_nobody_takes_stops_the_reading(run_gateway):
    """A minute is held, and what the socket's buffers take; a cancel is answered all the same."""
    engine = ScriptedEngine(frames=lambda text: 1000 if len(text) > 1 else 2)
    async with run_gateway(engine) as gateway, talking(gateway, response_format="f32") as client:
        context = client.context()
        await push(context, TEXT * 20)
        await engine.until(lambda: any(not granted for _, granted in engine.credits))
        assert client._ahead_s() < 62
        assert (await context.cancel()).samples_sent > 60 * 44100


async def test_nothing_holds_on_to_contexts(gateway):
    async with talking(gateway) as client:
        context = client.context()
        await push(context, "Hello.")
        assert [chunk async for chunk in context]
        gone = weakref.ref(context._core)
        del context
        assert gone() is None or not gone().chunks
        assert not client._link.session.contexts


async def test_segments_tell_which_audio_speaks_which_text(gateway):
    async with talking(gateway) as client:
        context = client.context()
        assert context.segments == ()
        samples = sum([chunk.samples async for chunk in context.say(tokens())])
    assert "".join(segment.text for segment in context.segments) == TEXT
    lengths = [frames_for(text) * FRAME_SAMPLES for text in spoken(gateway.engine)]
    starts = [sum(lengths[:index]) for index in range(len(lengths))]
    assert [segment.start for segment in context.segments] == starts and sum(lengths) == samples
