"""A recording becomes codes in stage 1, while others listen; the real stages."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import torch
from real_engine import heard, submit

from gateway.engine.stream import EngineError
from inference.checkpoint import Checkpoint
from inference.messages import Reference


def noise(samples: int) -> np.ndarray:
    return np.random.default_rng(5).uniform(-0.5, 0.5, samples).astype(np.float32)


async def test_codes_are_the_codecs_own_and_speak_as_a_reference(engine, directory):
    samples = noise(100_000)
    codec = Checkpoint.open(str(directory)).load_codec("float32")
    with torch.inference_mode():
        expected = codec.encode(torch.from_numpy(samples)[None])[0].numpy()
    spoken = engine(stages__0__devices="0,0", stages__1__devices="0,0")
    await spoken.start()
    try:
        stream = submit(spoken, 60)
        codes, (sizes, _) = await asyncio.gather(spoken.encode(samples), heard(stream))
        assert codes.dtype == np.uint16 and sizes == [4, 25, 25, 6]
        np.testing.assert_array_equal(codes, expected)
        voice = Reference("what was said", codes)
        streams = [submit(spoken, 10, voice=None, reference=voice) for _ in range(2)]  # one on each replica
        (_, first), (_, second) = await asyncio.gather(*map(heard, streams))
        np.testing.assert_array_equal(first, second)
    finally:
        await spoken.close()


async def test_whoever_waits_for_codes_hears_when_the_engine_ends(engine):
    spoken = engine()
    with pytest.raises(EngineError):
        await spoken.encode(noise(10))
    await spoken.start()
    try:
        given_up = asyncio.create_task(spoken.encode(noise(30 * 44100)))
        await asyncio.sleep(0)
        given_up.cancel()
        assert (await spoken.encode(noise(2048))).shape == (10, 1)
        encoding = asyncio.create_task(spoken.encode(noise(30 * 44100)))
        await asyncio.sleep(0)
    finally:
        await spoken.close()
    with pytest.raises(EngineError, match="ended"):
        await encoding
