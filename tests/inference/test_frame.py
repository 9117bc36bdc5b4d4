"""A frame is one function of tensors whose shapes never change, and asks nothing of the device: a graph can hold it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from parity import golden, tiny_config, tiny_model
from torch.fx.experimental.proxy_tensor import make_fx

from inference.dual_ar import DualAR
from inference.messages import Sampling
from inference.runner import ARRunner

WIDTH, SLOTS = 3, 4


def samplings() -> list[Sampling]:
    return [
        Sampling(seed=1),
        Sampling(seed=2, top_k=60, temperature=1.0, repetition_penalty=1.2),
        Sampling(seed=3, top_p=0.5),
    ]


def runner_of(which: str) -> ARRunner:
    """Slot 3 is the one that rows without a sequence write to."""
    model, values = tiny_model(which), golden(f"ar_tiny_{which}")
    runner = ARRunner(model, width=WIDTH, slots=SLOTS)
    for slot, sampling in enumerate(samplings()):
        runner.sequence(slot, values["prompt"][0][:, : 12 + 5 * slot], 0, sampling, 0)
    return runner


def frames(runner: ARRunner, rows: torch.Tensor, noise: torch.Tensor) -> np.ndarray:
    """What the rows make, frame by frame, without a look at the host: int64 [frames, B, Q + 1]."""
    made = []
    with torch.inference_mode():
        for uniform in noise:
            attend = runner.kv.attend_masked(rows, runner.state.lengths[rows])
            made.append(runner.frame(rows, uniform, attend, 64, True))
    return torch.stack(made).numpy()


def uniform(runner: ARRunner, count: int) -> torch.Tensor:
    return 1 - torch.rand((count, WIDTH, runner.noise.size), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("which", ["a", "b"])
def test_attending_under_a_mask_makes_the_same_frames_as_to_each_rows_own_positions(which):
    runner = runner_of(which)
    noise = uniform(runner, 12)
    masked = frames(runner, torch.arange(WIDTH), noise)
    step = iter(noise)
    draws = {}
    own = ARRunner(tiny_model(which), width=WIDTH, slots=SLOTS, draw=lambda s: draws["now"][s.slot].numpy())
    values = golden(f"ar_tiny_{which}")
    running = [
        own.sequence(slot, values["prompt"][0][:, : 12 + 5 * slot], 0, sampling, 0)
        for slot, sampling in enumerate(samplings())
    ]
    for made in masked:
        draws["now"] = next(step)
        np.testing.assert_array_equal(own.launch(running).made, made)


def test_a_row_makes_the_same_frames_in_every_position():
    noise = uniform(runner_of("a"), 6)
    straight = frames(runner_of("a"), torch.arange(WIDTH), noise)
    order = [2, 0, 1]
    turned = frames(runner_of("a"), torch.tensor(order), noise[:, order])
    np.testing.assert_array_equal(turned, straight[:, order])


@pytest.mark.parametrize("which", ["a", "b"])
def test_a_frame_asks_for_no_value(which):
    """Tensors without values: whatever asks for one, or makes a shape of one, raises.  In bfloat16 the operations are
    those of a GPU."""
    with torch.device("meta"), torch.inference_mode():
        model = DualAR(tiny_config(which)).to(torch.bfloat16).freeze()
        runner = ARRunner(model, width=WIDTH, slots=SLOTS)
        rows = torch.zeros(WIDTH, dtype=torch.int64)
        noise = torch.ones((WIDTH, runner.noise.size))
        attend = runner.kv.attend_masked(rows, runner.state.lengths[rows])
        made = runner.frame(rows, noise, attend, 64, True)
    assert made.shape == (WIDTH, runner.books + 1)
    for question in (made.max().item, made.nonzero, lambda: made[made > 0]):
        with pytest.raises((RuntimeError, NotImplementedError)):
            question()


def test_a_frame_can_be_recorded_and_played_again():
    """A recording has no branches: played from another state, with other noise, it does what the function does."""
    one, two = runner_of("a"), runner_of("a")
    rows, noise = torch.arange(WIDTH), uniform(one, 5)

    def frame(rows: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
        attend = one.kv.attend_masked(rows, one.state.lengths[rows])
        return one.frame(rows, uniform, attend, 64, True)

    with torch.no_grad():
        recorded = make_fx(frame)(rows, noise[0])  # tracing runs the first frame
        played = [recorded(rows, each) for each in noise[1:]]
    np.testing.assert_array_equal(torch.stack(played), frames(two, rows, noise)[1:])
