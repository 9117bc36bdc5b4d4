"""The real stages in their processes, on a small checkpoint with random weights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
import torch
from real_engine import EXTRA, PUBLISHED, TEXT, deploy_file, heard, submit

from gateway.engine.engine import Engine
from gateway.engine.stream import EngineError, EngineStream
from inference.checkpoint import Checkpoint
from inference.ends import longest_s
from inference.generate import generate
from inference.messages import AudioChunk, Finished, Reference, Sampling, Submit
from inference.runner import ARRunner

pytestmark = pytest.mark.asyncio(loop_scope="module")
STATEFUL = {f"{EXTRA}codec_decode": "stateful"}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def spoken(directory, tmp_path_factory) -> AsyncIterator[Engine]:
    """The engine of most tests: fixed chunks, stateful decode, six streams resident, four in a step."""
    file = tmp_path_factory.mktemp("deploy") / "deploy.yaml"
    deploy_file(file, PUBLISHED, stages__0__max_num_streams=6, **STATEFUL)
    engine = Engine(str(directory), file, "cpu", "warning")
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


def offline(
    directory: Path, frames: int, seed: int, voice: str | None = "ada", ignore_eos: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Codes and samples without any stage: generated alone, decoded whole."""
    torch.set_num_threads(1)  # as the stages have on two cores
    checkpoint = Checkpoint.open(str(directory))
    runner = ARRunner(checkpoint.load_dual_ar("float32"), width=4, slots=1, ignore_eos=ignore_eos)
    reference = checkpoint.voices()[voice].reference if voice else None
    packed = checkpoint.prompt_builder().build(TEXT, reference).packed
    codes = generate(runner, [packed], [Sampling(seed=seed, max_new_tokens=frames)])[0]
    with torch.inference_mode():
        whole = checkpoint.load_codec("float32").decode(torch.from_numpy(codes.astype(np.int64))[None])
    return codes, whole[0].numpy()


@pytest.mark.parametrize("samples_first", [False, True])
async def test_a_stream_ends_whichever_stage_is_heard_first(engine, samples_first):
    stream = EngineStream(engine(), Submit(1, TEXT, Sampling(), listener=1))
    finished = Finished(1, "done", np.zeros((2, 1), np.uint16))
    messages = [finished, AudioChunk(1, 0, np.ones(2048, np.float32), last=True)]
    complete = [stream.deliver(message) for message in (messages[::-1] if samples_first else messages)]
    assert complete == [False, True]  # it stays in the engine's books until both have come
    async with asyncio.timeout(5):
        assert [chunk.last async for chunk in stream] == [True]
    assert stream.finished is finished and stream.generated.is_set()


async def test_the_engine_speaks_what_offline_generation_makes(spoken, directory):
    streams = [submit(spoken, frames, seed, voice) for frames, seed, voice in CASES]
    results = await asyncio.gather(*map(heard, streams))
    for (frames, seed, voice), stream, (sizes, samples) in zip(CASES, streams, results, strict=True):
        codes, whole = offline(directory, frames, seed, voice)
        np.testing.assert_array_equal(stream.finished.codes, codes)
        np.testing.assert_allclose(samples, whole, atol=2e-5)
        assert stream.finished.reason == "max_length"
        assert sizes == fixed(frames)


CASES = [(1, 1, "ada"), (4, 2, "bert"), (29, 3, None), (60, 4, "ada"), (54, 5, "ada"), (3, 6, "bert")]


def fixed(frames: int) -> list[int]:
    sizes = [min(4, frames)]
    while sum(sizes) < frames:
        sizes.append(min(25, frames - sum(sizes)))
    return sizes


async def test_what_finds_no_end_is_stopped_at_a_bound_of_its_text(engine, directory):
    """Random weights rarely end; without `ignore_eos` that is noticed."""
    spoken = engine(ignore_eos=False, **STATEFUL)
    await spoken.start()
    try:
        streams = [submit(spoken, 1000, seed) for seed in range(4)]
        results = await asyncio.gather(*map(heard, streams))
    finally:
        await spoken.close()
    bound = round(longest_s(TEXT) * 44100 / 2048)
    frames = [stream.finished.codes.shape[1] for stream in streams]
    reasons = [stream.finished.reason for stream in streams]
    assert [sum(sizes) for sizes, _ in results] == frames  # what is told is what is heard
    assert max(frames) <= bound and "max_length" in reasons
    for seed, stream in enumerate(streams):
        codes = offline(directory, len(stream.finished.codes[0]), seed, ignore_eos=False)[0]
        np.testing.assert_array_equal(stream.finished.codes, codes)


async def test_more_listeners_than_rows_all_speak(spoken):
    results = await asyncio.gather(*(heard(submit(spoken, 30, seed)) for seed in range(14)))
    assert all(sizes == [4, 25, 1] for sizes, _ in results)


async def test_a_cancelled_stream_is_silent_and_leaves_the_others_alone(spoken, directory):
    kept, dropped = submit(spoken, 80, 1), submit(spoken, 800, 2)
    chunks = aiter(dropped)
    await anext(chunks)
    dropped.cancel()
    dropped.cancel()
    assert [chunk async for chunk in chunks] == []
    _, samples = await heard(kept)
    after, _ = await heard(submit(spoken, 4, 3))
    np.testing.assert_allclose(samples, offline(directory, 80, 1)[1], atol=2e-5)
    assert after == [4]


async def test_a_paused_stream_waits_and_loses_nothing(spoken, directory):
    paused = submit(spoken, 120, 1)
    chunks = aiter(paused)
    samples = [(await anext(chunks)).samples]
    paused.credit(False)
    for seed in range(3):  # these come and go meanwhile
        await heard(submit(spoken, 30, seed))
    assert not paused.generated.is_set()
    paused.credit(True)
    samples += [chunk.samples async for chunk in chunks]
    np.testing.assert_allclose(np.concatenate(samples), offline(directory, 120, 1)[1], atol=2e-5)


async def test_speech_goes_on_in_the_voice_of_what_was_said(spoken):
    first = submit(spoken, 20, voice=None)
    await heard(first)
    reference = Reference(TEXT, first.finished.codes)
    second = submit(spoken, 20, voice=None, reference=reference, segment_index=1)
    sizes, _ = await heard(second)
    assert sizes == [4, 16]


async def test_what_does_not_fit_ends_with_an_error_and_the_rest_goes_on(spoken, directory):
    """Prompt and frames share 2,048 positions; the lengths around that limit, beside a stream that speaks."""
    builder = Checkpoint.open(str(directory)).prompt_builder()
    reference = Reference("x", np.zeros((10, 1), dtype=np.uint16))
    rest = builder.build(TEXT, reference).packed.shape[1] - 1

    def asked(positions: int) -> EngineStream:
        codes = np.zeros((10, positions - rest), dtype=np.uint16)
        return submit(spoken, 20, voice=None, reference=Reference("x", codes))

    other = asyncio.create_task(heard(submit(spoken, 60)))
    for positions in (2048, 2049, 4000):
        with pytest.raises(EngineError, match=f"{positions} of 2048 positions") as error:
            await heard(asked(positions))
        assert error.value.code == "engine_failed"
    for positions in (2040, 2047):
        stream = asked(positions)
        sizes, _ = await heard(stream)
        assert (sum(sizes), stream.finished.reason) == (2048 - positions, "max_length")
    assert (await other)[0] == [4, 25, 25, 6]


async def test_a_stage_that_hangs_while_it_loads_is_noticed(engine, monkeypatch):
    monkeypatch.setattr("gateway.engine.replica.STARTING_S", 0.1)
    with pytest.raises(EngineError, match=r"stage [01] does not come to an end of loading"):
        await engine().start()


async def test_a_stage_that_cannot_start_says_why(directory, engine):
    with pytest.raises(EngineError, match=r"gpu_memory_utilization.*is needed"):
        await engine(stages__0__gpu_memory_utilization=1e-9).start()
    with pytest.raises(EngineError, match=r"stages.1..gpu_memory_utilization.*does not hold the codec's weights"):
        await engine(stages__1__gpu_memory_utilization=1e-9).start()
    with pytest.raises(EngineError, match="max_model_len: the checkpoint's max_seq_len is 2048, got 4096"):
        await engine(stages__0__max_model_len=4096, stages__0__max_num_batched_tokens=4096).start()
