"""A frame of kernels makes what a frame of plain operations makes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from device_kernels import DEVICE
from parity import filled, golden, tiny_config

from inference.cuda.frame import KernelFrame, fill_noise, takes
from inference.cuda.launches import Tile, Tiles
from inference.dual_ar import DualAR
from inference.messages import Sampling
from inference.noise import FrameNoise
from inference.runner import ARRunner

WIDTH, SLOTS, FRAMES = 3, 4, 3
# Few programs: in the interpreter each takes milliseconds.
LARGE = Tiles(qkv=Tile(8, 4), out=Tile(64, 4), gate=Tile(128, 4), down=Tile(64, 4, 32), head=Tile(128, 4))
SAMPLINGS = [
    Sampling(seed=1, temperature=1.0),
    Sampling(seed=2**40, top_k=60, temperature=1.3, repetition_penalty=1.3),
    Sampling(seed=3, top_p=0.5, temperature=0.9),
]


def runner_of(dtype: torch.dtype, **changes) -> ARRunner:
    """Three slots hold prompts; the fourth is the one of rows without a sequence."""
    model = filled(DualAR(tiny_config("a", **changes))).to(DEVICE, dtype).freeze()
    runner = ARRunner(model, width=WIDTH, slots=SLOTS)
    runner.state.padding = SLOTS - 1
    prompt = golden("ar_tiny_a")["prompt"][0]
    for slot, sampling in enumerate(SAMPLINGS):
        runner.sequence(slot, prompt[:, : 12 + 5 * slot], 0, sampling, slot)
    return runner


def noise(runner: ARRunner) -> torch.Tensor:
    draws = 1 - torch.rand((FRAMES, WIDTH, runner.noise.size), generator=torch.Generator().manual_seed(0))
    return draws.to(DEVICE)


def plain(runner: ARRunner, rows: torch.Tensor, draws: torch.Tensor) -> list[torch.Tensor]:
    made = []
    with torch.inference_mode():
        for uniform in draws:
            attend = runner.kv.attend_masked(rows, runner.state.lengths[rows])
            made.append(runner.frame(rows, uniform, attend, runner.model.config.codebook_size + 1, True))
    return made


def kernels(runner: ARRunner, rows: torch.Tensor, draws: torch.Tensor, tiles: Tiles) -> list[torch.Tensor]:
    frame = KernelFrame(runner.model, len(rows), runner.state, runner.kv, runner.noise, ignore_eos=False, tiles=tiles)
    made = [torch.empty((len(rows), runner.books + 1), dtype=torch.int64, device=DEVICE) for _ in draws]
    with torch.inference_mode():
        for uniform, each in zip(draws, made, strict=True):
            frame(rows, uniform, each)
    return made


@pytest.mark.parametrize("part", [16, 128])
def test_codes_and_state_are_those_of_plain_operations(part):
    one, two = runner_of(torch.float32), runner_of(torch.float32)
    assert takes(one.model.config, WIDTH)
    rows, draws = torch.arange(WIDTH, device=DEVICE), noise(one)
    made = kernels(one, rows, draws, replace(LARGE, part=part))
    for each, expected in zip(made, plain(two, rows, draws), strict=True):
        np.testing.assert_array_equal(each.cpu(), expected.cpu())
    for name in ("columns", "lengths", "windows", "begun", "said"):
        np.testing.assert_array_equal(getattr(one.state, name).cpu(), getattr(two.state, name).cpu(), err_msg=name)
    torch.testing.assert_close(one.kv.keys, two.kv.keys, atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(one.kv.values, two.kv.values, atol=2e-5, rtol=1e-4)


def test_a_row_makes_the_same_frame_in_every_position_bit_for_bit():
    """In bfloat16, alone beside padding too."""
    first = noise(runner_of(torch.bfloat16))[:1]
    results = []
    for order in ([0, 1, 2], [2, 0, 1], [3, 3, 1]):
        runner = runner_of(torch.bfloat16)
        rows = torch.tensor(order, device=DEVICE)
        draws = torch.stack([first[0, row % WIDTH] for row in order])[None]
        made = kernels(runner, rows, draws, LARGE)[0]
        results.append({slot: (made[row].tolist(), runner.kv.keys[:, slot].clone()) for row, slot in enumerate(order)})
    for result in results[1:]:
        for slot in set(result) - {3}:
            assert result[slot][0] == results[0][slot][0]
            assert torch.equal(result[slot][1], results[0][slot][1])


def test_an_end_is_found_and_the_padding_stays():
    runner = runner_of(torch.float32, eos_token_id=463)
    runner.model.semantic_head[-1] = 50 * runner.model.semantic_head[:-1].abs().sum(0)  # an end that is often chosen
    rows = torch.tensor([0, 3, 3], device=DEVICE)
    before = runner.state.lengths[3].item()
    made = kernels(runner, rows, noise(runner), LARGE)
    plain_runner = runner_of(torch.float32, eos_token_id=463)
    plain_runner.model.semantic_head[-1] = runner.model.semantic_head[-1]
    for each, expected in zip(made, plain(plain_runner, rows, noise(runner)), strict=True):
        np.testing.assert_array_equal(each[0].cpu(), expected[0].cpu())
    assert 64 in [each[0, 0].item() for each in made]
    assert runner.state.lengths[3].item() == before


def test_noise_is_that_of_the_host_bit_for_bit():
    made = FrameNoise(65, 4, 64)
    keys = [(42, 0, 10), (2**63 - 1, 7, 0), (2**33 + 5, 123456, 3)]
    lengths = [10, 2047, 9]
    noise = torch.empty((3, made.size), device=DEVICE)
    rows = torch.tensor([2, 0, 1], device=DEVICE)
    fill_noise(rows, torch.tensor(keys, device=DEVICE), torch.tensor(lengths, device=DEVICE), noise, Tiles())
    for row, slot in enumerate(rows.tolist()):
        seed, segment, first = keys[slot]
        np.testing.assert_array_equal(noise[row].cpu(), made.draw(seed, segment, lengths[slot] - first))
