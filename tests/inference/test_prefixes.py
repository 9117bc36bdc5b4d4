"""References that requests bring are computed once, as long as there is room to keep them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checkpoints import write_checkpoint

from inference.checkpoint import Checkpoint
from inference.kv import PrefixKV
from inference.memory import spare_slots
from inference.messages import Reference, Sampling, Submit
from inference.prefill import Prefiller
from inference.prefixes import PrefixCache
from inference.runner import ARRunner


def reference(number: int, frames: int = 12) -> Reference:
    return Reference("what was said", np.random.default_rng(number).integers(0, 200, (10, frames)).astype(np.uint16))


def prefix(positions: int) -> PrefixKV:
    return PrefixKV(*torch.zeros(2, 1, 1, positions, 2))


def test_the_least_recently_used_goes_when_the_bound_is_reached():
    cache = PrefixCache(30)
    for number in (1, 2, 3):
        cache.put(reference(number), prefix(10))
    assert cache.get(reference(1)) is not None  # equal content is the same voice
    cache.put(reference(4), prefix(10))
    assert [reference(number) in cache for number in (1, 2, 3, 4)] == [True, False, True, True]
    cache.put(reference(5), prefix(30))
    assert [number for number in range(1, 6) if reference(number) in cache] == [5]
    assert not cache.takes(31) and not PrefixCache(0).takes(1)


def test_the_same_codes_with_another_transcript_are_another_voice():
    cache = PrefixCache(30)
    cache.put(reference(1), prefix(10))
    assert Reference("something else", reference(1).codes) not in cache


def test_room_is_what_the_slots_leave():
    assert spare_slots(total=100, utilization=0.5, weights=10, slot=10, slots=2, wanted=1) == 1
    assert spare_slots(total=100, utilization=0.5, weights=10, slot=10, slots=4, wanted=1) == 0


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Checkpoint:
    return Checkpoint.open(str(write_checkpoint(tmp_path_factory.mktemp("checkpoint"))))


@pytest.mark.parametrize("kept_positions, second", [(1000, "text"), (0, "whole")])
def test_a_second_segment_computes_no_more_than_its_text_and_says_the_same(checkpoint, kept_positions, second):
    runner = ARRunner(checkpoint.load_dual_ar("float32"), width=2, slots=2, ignore_eos=True)
    prefiller = Prefiller(checkpoint, runner, kept_positions)
    columns, spoken = [], []
    for slot in (0, 1):
        request = Submit(slot, "hello world", Sampling(seed=3, max_new_tokens=8), listener=1, reference=reference(1))
        prompt = prefiller.prompt(request)
        columns.append(prefiller.columns(request, prompt))
        sequence = prefiller.sequence(slot, request, prompt)
        for _ in range(8):
            runner.step([sequence])
        spoken.append(np.stack(sequence.frames))
    whole = prompt.packed.shape[1]
    assert columns == [whole, whole - prompt.prefix if second == "text" else whole]
    np.testing.assert_array_equal(*spoken)


def test_a_voice_that_was_kept_ahead_costs_its_first_segment_no_more_than_the_text(checkpoint):
    runner = ARRunner(checkpoint.load_dual_ar("float32"), width=2, slots=2, ignore_eos=True)
    prefiller = Prefiller(checkpoint, runner, 100)
    prefiller.keep(0, reference(1))
    prefiller.keep(0, reference(2, frames=60))  # there is no room: what is kept stays
    for voice, kept in ((reference(1), True), (reference(2, frames=60), False)):
        request = Submit(1, "hello world", Sampling(), listener=1, reference=voice)
        prompt = prefiller.prompt(request)
        assert prefiller.columns(request, prompt) == prompt.packed.shape[1] - (prompt.prefix if kept else 0)
