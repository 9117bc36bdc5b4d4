"""The same seed, text and voice give the same speech, whatever else the engine does, wherever its stages are."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from embedded import CHUNK, FIRST, STEP, HeardEngine, Offline, fixed
from real_engine import EXTRA, heard

from gateway.engine.stream import EngineStream

LONG = ("It has stopped raining by now.", "aria", 1)
SHORT = ("Hello there.", "milo", 2)
KEPT = [LONG, SHORT]  # whose speech has to stay the same
OTHERS = [("One, two, three, four.", "juno", 3), ("Good evening to you.", "clara", 4)]
Speech = list[tuple[EngineStream, list[int], np.ndarray]]


@pytest.mark.parametrize(
    ("placement", "policy"),
    [("threads", "fixed"), ("processes", "fixed"), ("threads", "adaptive")],
    ids=lambda value: value,
)
async def test_the_same_speech(embedded, offline, placement, policy):
    """Alone, in a full batch, and while others come and go.  With fixed chunks the samples are the same bit for bit;
    where the time decides on borders, to a 16-bit step."""
    async with embedded(stage_placement=placement, **{f"{EXTRA}codec_chunk_policy": policy}) as engine:
        spoken = [
            *await listen(engine.ask(*SHORT)),
            *await in_a_full_batch(engine),
            *await while_others_come_and_go(engine),
        ]
        assert max(engine.rows) == engine.deploy.ar.max_num_seqs
    assert len(spoken) == 5
    for stream, sizes, samples in spoken:
        check(offline, policy, stream, sizes, samples)


def check(offline: Offline, policy: str, stream: EngineStream, sizes: list[int], samples: np.ndarray) -> None:
    """As offline."""
    codes = offline.codes(stream.request)
    np.testing.assert_array_equal(stream.finished.codes, codes)
    if policy == "fixed":
        assert sizes == fixed(codes.shape[1])
        np.testing.assert_array_equal(samples, offline.stateful(codes))
    else:
        assert sizes[0] == FIRST and max(sizes) <= CHUNK and sum(sizes) == codes.shape[1]
        np.testing.assert_allclose(samples, offline.whole(codes), atol=STEP)


async def listen(*streams: EngineStream) -> Speech:
    """To all of them at once."""
    speech = await asyncio.gather(*map(heard, streams))
    return [(stream, *one) for stream, one in zip(streams, speech, strict=True)]


async def in_a_full_batch(engine: HeardEngine) -> Speech:
    """Of one listener, whose streams wait for nobody's share."""
    listener = engine.next_listener()
    streams = [engine.ask(*request, listener) for request in (*OTHERS, *KEPT)]
    return (await listen(*streams))[len(OTHERS) :]


async def while_others_come_and_go(engine: HeardEngine) -> Speech:
    """More than a step has rows; some are cancelled before they begin, some while they speak, some soon end."""
    listener = engine.next_listener()
    dropped = [engine.ask(*request, listener) for request in (*OTHERS, *OTHERS)]
    kept = [asyncio.create_task(listen(engine.ask(*request, listener))) for request in KEPT]
    dropped.pop().cancel()
    await anext(aiter(dropped[0]))
    dropped.pop(0).cancel()
    brief = [engine.ask(*request, listener, max_new_tokens=frames) for frames, request in enumerate(OTHERS, 1)]
    await listen(*brief)
    late = engine.ask(*OTHERS[0], listener)
    await anext(aiter(dropped[0]))
    for stream in (late, *dropped):
        stream.cancel()
    return [speech for task in kept for speech in await task]
