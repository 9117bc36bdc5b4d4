"""Frames and prefills from CUDA graphs are those of eager operations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from parity import filled, golden, tiny_config

from inference.checkpoint import Checkpoint
from inference.dual_ar import DualAR
from inference.generate import generate
from inference.messages import Sampling
from inference.runner import ARRunner

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")]

WIDTH = 4
SENTENCES = (Path(__file__).parents[2] / "inference/training/data/heldout.txt").read_text().splitlines()
SAMPLINGS = [
    Sampling(seed=1, temperature=1.0, max_new_tokens=20),
    Sampling(seed=2**40, top_k=90, temperature=1.3, repetition_penalty=1.3, max_new_tokens=20),
    Sampling(seed=2**62 + 1, top_p=0.5, temperature=0.9, max_new_tokens=20),
]


def model_of(which: str, dtype: torch.dtype = torch.float32) -> DualAR:
    return filled(DualAR(tiny_config(which))).to("cuda", dtype).freeze()


def graph_runner(model: DualAR, **options) -> ARRunner:
    from inference.cuda.graph_runner import GraphRunner

    return GraphRunner(model, WIDTH, WIDTH, ignore_eos=True, **options)


def prompts(which: str) -> list[np.ndarray]:
    prompt = golden(f"ar_tiny_{which}")["prompt"][0]
    return [prompt[:, : 12 + 5 * index] for index in range(len(SAMPLINGS))]


@pytest.mark.parametrize("kernels", [None, False])
@pytest.mark.parametrize("which", ["a", "b"])
def test_codes_are_those_of_eager_operations(which, kernels):
    eager = ARRunner(model_of(which), WIDTH, WIDTH, ignore_eos=True)
    expected = generate(eager, prompts(which), SAMPLINGS)
    made = generate(graph_runner(model_of(which), kernels=kernels), prompts(which), SAMPLINGS)
    for each, codes in zip(made, expected, strict=True):
        np.testing.assert_array_equal(each, codes)


@pytest.mark.parametrize("kernels", [None, False])
def test_alone_in_a_batch_and_one_behind_the_codes_are_the_same(kernels):
    """In bfloat16, where sums in another order would show."""
    runner = graph_runner(model_of("a", torch.bfloat16), kernels=kernels)
    together = generate(runner, prompts("a"), SAMPLINGS)
    for prompt, sampling, codes in zip(prompts("a"), SAMPLINGS, together, strict=True):
        np.testing.assert_array_equal(generate(runner, [prompt], [sampling])[0], codes)
    running = [runner.sequence(slot, prompts("a")[slot], 0, SAMPLINGS[slot], 0) for slot in (2, 0, 1)]
    results = [runner.launch(running) for _ in range(20)]  # nothing is read in between
    frames = [result.read()[0] for result in results]
    for row, slot in enumerate((2, 0, 1)):
        np.testing.assert_array_equal(np.stack([frame[row] for frame in frames], axis=1), together[slot])


def test_the_embedded_voice_says_what_it_says_on_a_cpu():
    """In float32 with the same noise, until a draw is so close that the last bits decide."""
    checkpoint = Checkpoint.open(None)
    builder, voice = checkpoint.prompt_builder(), next(iter(checkpoint.voices().values())).reference
    packed = [builder.build(text, voice).packed for text in SENTENCES[:10]]
    samplings = [Sampling(seed=seed, max_new_tokens=200) for seed in range(len(packed))]
    cpu = ARRunner(checkpoint.load_dual_ar("float32"), WIDTH, WIDTH)
    from inference.cuda.graph_runner import GraphRunner

    gpu = GraphRunner(checkpoint.load_dual_ar("float32", "cuda"), WIDTH, WIDTH)
    equal = 0
    for first in range(0, len(packed), WIDTH):
        batch = packed[first : first + WIDTH], samplings[first : first + WIDTH]
        for on_cpu, on_gpu in zip(generate(cpu, *batch), generate(gpu, *batch), strict=True):
            equal += on_cpu.shape == on_gpu.shape and bool((on_cpu == on_gpu).all())
    print(f"{equal} of {len(packed)} sentences equal")
    assert equal >= 9
