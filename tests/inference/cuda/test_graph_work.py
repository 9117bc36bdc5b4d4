"""What the graphs of the runner hold makes what eager operations make; here it runs without being captured.

`tests/gpu` has the same with graphs.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from device_kernels import DEVICE
from parity import filled, golden, tiny_config

from inference.cuda import graph_frame, graph_prompt, graph_runner
from inference.dual_ar import DualAR
from inference.generate import generate
from inference.messages import Sampling
from inference.runner import ARRunner

WIDTH = 2
SAMPLINGS = [
    Sampling(seed=2**62 + 1, temperature=1.0, max_new_tokens=2),
    Sampling(seed=2, top_k=90, temperature=1.3, repetition_penalty=1.3, max_new_tokens=2),
]


class Uncaptured:
    """Does the work at each launch."""

    def __init__(self, work, pool):
        work()  # as a capture does
        self.launch = work


class Happened:
    """An event of the past."""

    def synchronize(self) -> None:
        pass


@pytest.fixture(autouse=True)
def uncaptured(monkeypatch):
    for module in (graph_frame, graph_prompt):
        monkeypatch.setattr(module, "Graph", Uncaptured)
        monkeypatch.setattr(module, "put", lambda values, where: where.copy_(values))
    monkeypatch.setattr(graph_frame, "fetch", lambda values: (values.cpu().clone(), Happened()))
    monkeypatch.setattr(graph_runner, "new_pool", lambda: (0, 0))


def model() -> DualAR:
    return filled(DualAR(tiny_config("a"))).to(DEVICE).freeze()


def prompts() -> list[np.ndarray]:
    prompt = golden("ar_tiny_a")["prompt"][0]
    return [prompt[:, :12], prompt[:, :17]]


@pytest.mark.parametrize(("kernels", "injected"), [(False, True), (False, False), (True, False)])
@torch.inference_mode()
def test_codes_are_those_of_eager_operations(kernels, injected):
    """With noise from the device, noise from the host, our kernels and a row without a sequence."""
    eager = ARRunner(model(), WIDTH, WIDTH, max_len=64)
    draw = (lambda s: eager.noise.draw(s.sampling.seed, s.segment_index, s.step)) if injected else None
    runner = graph_runner.GraphRunner(model(), WIDTH, WIDTH, max_len=64, draw=draw, kernels=kernels)
    made, expected = generate(runner, prompts(), SAMPLINGS, [0, 7]), generate(eager, prompts(), SAMPLINGS, [0, 7])
    for each, codes in zip(made, expected, strict=True):
        np.testing.assert_array_equal(each, codes)
