"""Steps read at once or one behind: the same codes, and no slot is given away that a launched step uses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from parity import golden, tiny_model

from inference.generate import generate
from inference.messages import Sampling
from inference.runner import ARRunner
from inference.sequence import Sequence
from inference.stepper import Stepper


@dataclass(eq=False)
class Speaking:
    """As much of a stream as the stepper has to know."""

    sequence: Sequence

    @property
    def slot(self) -> int:
        """The slot that it holds."""
        return self.sequence.slot


@pytest.fixture(scope="module")
def case():
    """A tiny model whose rows end by themselves, and prompts [Q + 1, P]."""
    values = golden("ar_tiny_a")
    model = tiny_model("a", eos_token_id=int(values["eos_token_id"]))
    prompts = [packed[:, mask > 0] for packed, mask in zip(values["batch_prompt"], values["batch_mask"], strict=True)]
    return model, prompts * 3


def samplings(count: int) -> list[Sampling]:
    """Some end by themselves, some at their limit."""
    return [Sampling(temperature=1.0, seed=seed, max_new_tokens=4 + 3 * (seed % 4)) for seed in range(count)]


def land(stepper: Stepper, batch: list[Speaking], running: list[Speaking], runner: ARRunner) -> list[Speaking]:
    """One step as stage 0 makes it -> those that are over; their slots are released."""
    landing = stepper.step(batch)
    over = []
    if landing is None:
        return over
    assert landing.error is None
    for stream, frame, end in zip(landing.streams, landing.frames, landing.ended, strict=True):
        if stream not in running:
            continue
        if not end:
            stream.sequence.frames.append(frame)
        sequence = stream.sequence
        if end or (sequence.step == len(sequence.frames) and not runner.room(sequence)):
            over.append(stream)
            running.remove(stream)
            stepper.release(sequence.slot)
    return over


@pytest.mark.parametrize("one_behind", [False, True])
def test_joining_leaving_and_cancelling_change_nothing(case, one_behind):
    model, prompts = case
    wanted = samplings(len(prompts))
    alone = ARRunner(model, width=3, slots=1)
    expected = [generate(alone, [p], [s])[0] for p, s in zip(prompts, wanted, strict=True)]
    assert len({codes.shape[1] for codes in expected}) > 3

    runner = ARRunner(model, width=3, slots=4)
    stepper, rng = Stepper(runner, one_behind), np.random.default_rng(7)
    waiting, running, index_of, done = list(range(len(prompts))), [], {}, set()
    while waiting or running or stepper.flying:
        if waiting and stepper.has_free and rng.random() < 0.5:
            index = waiting.pop()
            sequence = runner.sequence(stepper.take(), prompts[index], 0, wanted[index], 0)
            running.append(Speaking(sequence))
            index_of[running[-1]] = index
        if running and rng.random() < 0.05:
            cancelled = running.pop(int(rng.integers(len(running))))
            stepper.release(cancelled.sequence.slot)
        batch = [running[i] for i in rng.permutation(len(running))[:3]]
        for stream in land(stepper, batch, running, runner):
            done.add(index_of[stream])
            codes = np.stack(stream.sequence.frames, axis=1) if stream.sequence.frames else np.zeros((4, 0))
            np.testing.assert_array_equal(codes, expected[index_of[stream]])
    assert stepper.unused == 4 and stepper.has_free
    assert len(done) >= len(prompts) // 2  # most were not cancelled


def test_a_slot_is_not_given_away_before_its_step_has_run(case):
    model, prompts = case
    runner = ARRunner(model, width=2, slots=1)
    stepper = Stepper(runner, one_behind=True)
    slot = stepper.take()
    stream = Speaking(runner.sequence(slot, prompts[0], 0, Sampling(seed=1, max_new_tokens=20), 0))
    assert stepper.step([stream]) is None and stepper.flying
    stepper.release(slot)
    assert not stepper.has_free and stepper.unused == 1
    assert stepper.step([]).streams == [stream]
    assert stepper.has_free and not stepper.flying


@pytest.mark.parametrize("one_behind", [False, True])
def test_what_a_launch_raises_lands_with_its_streams_alone(case, one_behind):
    model, prompts = case
    calls = []

    def draw(sequence: Sequence) -> np.ndarray:
        calls.append(sequence)
        if len(calls) == 2:
            raise MemoryError("no room")
        return np.full(runner.noise.size, 0.5, dtype=np.float32)

    runner = ARRunner(model, width=1, slots=2, draw=draw)
    stepper = Stepper(runner, one_behind)
    one, two = (Speaking(runner.sequence(stepper.take(), prompts[0], 0, Sampling(), 0)) for _ in range(2))
    landings = [landing for batch in ([one], [two], [one], []) if (landing := stepper.step(batch)) is not None]
    assert [landing.streams for landing in landings] == [[one], [two], [one]]
    assert [landing.error is None for landing in landings] == [True, False, True]
    assert str(landings[1].error) == "no room"
