"""The embedded voice: what is short stays short, and what runs on is stopped."""

from __future__ import annotations

import pytest

from inference.checkpoint import Checkpoint
from inference.ends import EndGuard, longest_s
from inference.generate import generate
from inference.messages import Sampling
from inference.runner import ARRunner

SHORT = ["Hi", "No.", "A", "7", "OK!"]


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return Checkpoint.open(None)


@pytest.fixture(scope="module")
def model(checkpoint):
    return checkpoint.load_dual_ar("float32")


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 20), marks=pytest.mark.slow)], ids=["few", "many"])
def test_very_short_texts_are_spoken_and_end(checkpoint, model, seeds):
    runner, builder = ARRunner(model, width=4, slots=5), checkpoint.prompt_builder()
    voice = next(iter(checkpoint.voices().values())).reference
    prompts = [builder.build(text, voice).packed for text in SHORT]
    for seed in seeds:
        lengths = []
        for some in (prompts[:4], prompts[4:]):
            codes = generate(runner, some, [Sampling(seed=seed, max_new_tokens=200)] * len(some))
            lengths += [frames.shape[1] / checkpoint.config.frame_rate for frames in codes]
        assert all(0.15 <= seconds <= 2.5 for seconds in lengths), dict(zip(SHORT, lengths, strict=True))


def test_what_runs_on_is_stopped_soon(checkpoint, model):
    """The end is withheld, so that the model goes on behind its text."""
    text, rate = "Good morning to you.", checkpoint.config.frame_rate
    runner = ARRunner(model, width=1, slots=1, ignore_eos=True)
    voice = next(iter(checkpoint.voices().values())).reference
    packed = checkpoint.prompt_builder().build(text, voice).packed
    codes = generate(runner, [packed], [Sampling(seed=1, max_new_tokens=round(longest_s(text) * rate) + 1)])[0]
    guard = EndGuard(text, rate)
    stop = next(n for n, code in enumerate(codes[0].tolist(), 1) if guard.add(code) is not None)
    assert 1.5 < stop / rate < longest_s(text) + 0.1
