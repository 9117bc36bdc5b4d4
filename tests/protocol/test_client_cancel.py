"""Barge-in with the Python client: a cancel tells how far it came, and nothing follows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from scripted_engine import FRAME_SAMPLES, ScriptedEngine
from talking import (
    LONG,
    TEXT,
    first_chunk,
    no_task_is_left,  # noqa: F401
    push,
    talking,
)

from protocol.client import ContextEnded


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


async def test_a_cancel_ends_the_iteration_of_say_though_text_still_comes(run_gateway):
    """The model is in the middle of its answer, and its generator is closed."""
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[str]:
        try:
            yield TEXT
            await asyncio.Event().wait()
        finally:
            closed.set()

    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, talking(gateway) as client:
        context = client.context()
        came = 0
        async for _ in context.say(endless()):
            came += 1
            if came == 1:
                stopped = await context.cancel(100)
        assert closed.is_set() and came == 1
        assert stopped.text_spoken + stopped.text_remaining == TEXT
        await engine.until(lambda: not engine.live)


async def test_leaving_the_iteration_of_a_context_cancels_it(run_gateway):
    engine = ScriptedEngine(speed=200)
    async with run_gateway(engine) as gateway, talking(gateway) as client:
        saying = client.context().say(TEXT)
        await anext(saying)
        await saying.aclose()
        await engine.until(lambda: not engine.live and engine.cancelled)
