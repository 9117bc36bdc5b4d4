"""What a deploy key's value changes of the speech of the embedded voice: nothing, or what is stated here.

Every engine speaks the same utterances at once; their codes are those of offline generation.  The placement of the
stages and the chunk policy stand in test_determinism.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
from embedded import CHUNK, FIRST, STEP, HeardEngine, Offline, fixed
from real_engine import EXTRA, heard
from running_gateway import running

from gateway.server import settings_from
from inference.device import weight_bytes
from inference.memory import host_memory
from inference.messages import ARReport

UTTERANCES = [
    ("Yes, of course.", "aria", 1),
    ("Hello there.", "milo", 2),
    ("The rain has stopped.", "juno", 3),
]
LONG = ("The rain has stopped, and the streets are wet.", "clara", 4)
Speech = list[tuple[list[int], np.ndarray]]


async def speak(engine: HeardEngine, offline: Offline, *more: tuple[str, str, int]) -> tuple[list[np.ndarray], Speech]:
    """All at once -> the codes, which are right, and what was heard.  One listener, who waits for nobody's share."""
    listener = engine.next_listener()
    streams = [engine.ask(*utterance, listener) for utterance in (*UTTERANCES, *more)]
    speech = await asyncio.gather(*map(heard, streams))
    for stream in streams:
        assert stream.finished.reason == "done"
        np.testing.assert_array_equal(stream.finished.codes, offline.codes(stream.request))
    return [stream.finished.codes for stream in streams], speech


def check_same(codes: list[np.ndarray], speech: Speech, decode: Callable) -> None:
    """The samples are those of `decode`, bit for bit, in fixed chunks."""
    for frames, (sizes, samples) in zip(codes, speech, strict=True):
        assert sizes == fixed(frames.shape[1])
        np.testing.assert_array_equal(samples, decode(frames))


async def test_kept_prefixes_and_steps_one_behind_give_the_same_samples(embedded, offline):
    """Both are off in all other tests here."""
    async with embedded(stages__0__enable_prefix_caching=True, stages__0__async_scheduling=True) as engine:
        check_same(*await speak(engine, offline), offline.stateful)


async def test_fewer_slots_from_less_memory_give_the_same_samples(embedded, offline):
    """Who has no slot waits for one."""
    runner = offline.runner
    slot = runner.kv.keys[:, 0].nbytes + runner.kv.values[:, 0].nbytes
    share = (weight_bytes(runner.model) + 2.5 * slot) / host_memory()
    async with embedded(stages__0__gpu_memory_utilization=share) as engine:
        check_same(*await speak(engine, offline), offline.stateful)
        await engine.idle()
        assert max(engine.rows) == 2
    assert {report.slots for report in engine.reports if isinstance(report, ARReport)} == {2}


async def test_replicas_give_the_same_samples(embedded, offline):
    """They share the cores: sums in another order than offline, on many, may differ in a sample's last bit."""
    async with embedded(stages__0__devices="0,1") as engine:
        _, first = await speak(engine, offline)
        codes, second = await speak(engine, offline)  # another listener, who goes to the other one
    for frames, (sizes, samples), (_, others) in zip(codes, first, second, strict=True):
        assert sizes == fixed(frames.shape[1])
        np.testing.assert_array_equal(samples, others)
        np.testing.assert_allclose(samples, offline.whole(frames), atol=STEP)


async def test_without_async_chunk_the_whole_is_decoded_at_once(embedded, offline):
    """Nor does stage 1 wait for a chunk before there is to be one."""
    async with embedded(async_chunk=False, **{f"{EXTRA}connector_get_max_wait_first_chunk": 1}) as engine:
        codes, speech = await speak(engine, offline, LONG)
    for frames, (sizes, samples) in zip(codes, speech, strict=True):
        assert sizes == [frames.shape[1]]
        np.testing.assert_allclose(samples, offline.whole(frames), atol=STEP)


async def test_windowed_differs_where_the_window_has_lost_the_past(embedded, offline, record_property):
    """The samples are those of decodes behind 25 frames; the voice hardly hears what was before."""
    async with embedded(**{f"{EXTRA}codec_decode": "windowed"}) as engine:
        codes, speech = await speak(engine, offline, LONG)
    check_same(codes, speech, offline.windowed)
    *short, long = (np.abs(s - offline.whole(f)).max() for f, (_, s) in zip(codes, speech, strict=True))
    record_property("largest difference of windowed and stateful", float(long))
    assert codes[-1].shape[1] > FIRST + CHUNK and 10 * max(short) < long < 2 * STEP


async def test_the_repetition_penalty_is_what_the_file_says(embedded, offline):
    """Clients of the gateway get it; a row without it is untouched by one with it in the same step."""
    text, voice, seed = UTTERANCES[2]
    async with embedded(stages__0__default_sampling_params__repetition_penalty=1.3) as engine:
        listener = engine.next_listener()
        off, on = (engine.ask(text, voice, seed, listener, repetition_penalty=penalty) for penalty in (1.0, 1.3))
        await asyncio.gather(heard(off), heard(on))
        async with running(engine, settings_from(engine.deploy)) as gateway, await gateway.client() as client:
            await client.say("session.config", voice=voice, seed=seed, split_granularity="none")
            await client.say("input.text", text=text)
            await client.say("input.done")
            audio = np.frombuffer((await client.whole("_0")).audio, "<i2") * STEP
        spoken = engine.streams[-1]
    assert spoken.request.sampling.repetition_penalty == 1.3
    for stream in (off, on, spoken):
        np.testing.assert_array_equal(stream.finished.codes, offline.codes(stream.request))
    np.testing.assert_array_equal(spoken.finished.codes, on.finished.codes)
    assert not np.array_equal(on.finished.codes, off.finished.codes)
    np.testing.assert_allclose(audio, offline.stateful(on.finished.codes), atol=1.01 * STEP)
