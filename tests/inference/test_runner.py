"""Continuous batching: a sequence's frames depend on nothing but its own request."""

from __future__ import annotations

import numpy as np
import pytest
from checkpoints import write_checkpoint

from inference.checkpoint import Checkpoint
from inference.generate import generate
from inference.messages import Sampling
from inference.noise import FrameNoise
from inference.runner import ARRunner

TEXTS = ["hello world", "the quick brown fox jumps over the lazy dog", "one", "a small test of the batch"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Checkpoint:
    return Checkpoint.open(str(write_checkpoint(tmp_path_factory.mktemp("checkpoint"))))


@pytest.fixture(scope="module")
def model(checkpoint):
    return checkpoint.load_dual_ar("float32")


def prompts(checkpoint: Checkpoint) -> list[np.ndarray]:
    builder, voice = checkpoint.prompt_builder(), checkpoint.voices()["ada"].reference
    return [builder.build(text, voice).packed for text in TEXTS]


def requests() -> list[Sampling]:
    return [Sampling(seed=seed, max_new_tokens=30 + 7 * seed, top_k=50 if seed % 2 else 80) for seed in range(4)]


def test_alone_or_in_a_batch_the_codes_are_the_same(checkpoint, model):
    runner = ARRunner(model, width=4, slots=4, ignore_eos=True)
    together = generate(runner, prompts(checkpoint), requests())
    for packed, sampling, codes in zip(prompts(checkpoint), requests(), together, strict=True):
        alone = generate(runner, [packed], [sampling])[0]
        np.testing.assert_array_equal(alone, codes)


def test_joining_and_leaving_at_any_frame_changes_nothing(checkpoint, model):
    runner = ARRunner(model, width=4, slots=4, ignore_eos=True)
    expected = [generate(runner, [p], [s])[0] for p, s in zip(prompts(checkpoint), requests(), strict=True)]
    rng = np.random.default_rng(3)
    waiting, running, done = list(range(4)), {}, {}
    slots = [3, 1, 0, 2]
    while waiting or running:
        if waiting and rng.random() < 0.3:
            index = waiting.pop()
            packed, sampling = prompts(checkpoint)[index], requests()[index]
            running[index] = runner.sequence(slots[index], packed, 0, sampling, 0)
        batch = [index for index in rng.permutation(list(running)).tolist() if rng.random() < 0.8]
        runner.step([running[index] for index in batch])
        for index in [i for i in batch if len(running[i].frames) == running[i].sampling.max_new_tokens]:
            done[index] = np.stack(running.pop(index).frames, axis=1)
    for index, codes in done.items():
        np.testing.assert_array_equal(codes, expected[index])


def test_a_kept_prefix_changes_nothing(checkpoint, model):
    builder, voice = checkpoint.prompt_builder(), checkpoint.voices()["ada"].reference
    prompt = builder.build(TEXTS[1], voice)
    runner = ARRunner(model, width=2, slots=2, ignore_eos=True)
    runner.prefill(0, prompt.packed[:, : prompt.prefix], 0)
    kept = runner.kv.snapshot(0, prompt.prefix)
    runner.kv.restore(1, kept)
    frames = []
    for slot in (0, 1):
        sequence = runner.sequence(slot, prompt.packed, prompt.prefix, Sampling(), 0)
        for _ in range(20):
            runner.step([sequence])
        frames.append(np.stack(sequence.frames))
    np.testing.assert_array_equal(*frames)


def test_noise_is_a_function_of_seed_segment_and_step():
    noise = FrameNoise(257, 10, 256)
    first = noise.draw(42, 0, 5)
    noise.draw(7, 3, 1)
    np.testing.assert_array_equal(first, noise.draw(42, 0, 5))
    others = [noise.draw(43, 0, 5), noise.draw(42, 1, 5), noise.draw(42, 0, 6)]
    assert all(abs(np.corrcoef(first, other)[0, 1]) < 0.1 for other in others)
    assert first.shape == (2 * 257 + 9 * 256,) and (first > 0).all() and (first <= 1).all()
    assert first.mean() == pytest.approx(0.5, abs=0.05)


def test_different_seeds_speak_differently(checkpoint, model):
    runner = ARRunner(model, width=2, slots=2, ignore_eos=True)
    packed = prompts(checkpoint)[0]
    one, two = generate(runner, [packed] * 2, [Sampling(seed=s, max_new_tokens=20) for s in (1, 2)])
    assert (one != two).mean() > 0.5


def test_padding_never_comes_to_an_end(checkpoint, model):
    """Empty rows are in most steps; there may be more of those than a slot has positions."""
    runner = ARRunner(model, width=3, slots=2, ignore_eos=True)
    generate(runner, [prompts(checkpoint)[2]], [Sampling(max_new_tokens=5)])
    assert runner.state.lengths[runner.state.padding] == 0
