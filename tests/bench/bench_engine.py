"""What the engine's parts take: prefill, a step at each batch fill, and the codec's decode at each chunk size.

    python tests/bench/bench_engine.py [--model DIR] [--device cpu] [--threads 1]

Medians of repeated runs in one process, after warm-up; noise is seeded and the end token is ignored.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from inference.checkpoint import Checkpoint
from inference.codec_stream import StatefulDecoder
from inference.messages import Sampling
from inference.runner import ARRunner

TEXT = "The train to the coast leaves at half past nine every morning."
WIDTH = 4


def median_ms(work: Callable[[], object], repeats: int, device: str) -> float:
    """Median milliseconds of one call."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times[repeats // 5 :])


def bench_ar(checkpoint: Checkpoint, device: str, repeats: int) -> None:
    """Prefill of the text behind a kept prefix, and steps."""
    model = checkpoint.load_dual_ar("float32" if device == "cpu" else "bfloat16", device)
    print(f"language model: {sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters")
    voices = list(checkpoint.voices().values())
    prompt = checkpoint.prompt_builder().build(TEXT, voices[0].reference if voices else None)
    runner = ARRunner(model, WIDTH, WIDTH, ignore_eos=True)
    whole = median_ms(lambda: runner.prefill(0, prompt.packed, 0), 10, device)
    text = median_ms(lambda: runner.prefill(0, prompt.packed[:, prompt.prefix :], prompt.prefix), 10, device)
    print(
        f"prefill of {prompt.packed.shape[1]} positions {whole:.1f} ms, behind a kept prefix of {prompt.prefix}: "
        f"{text:.1f} ms"
    )
    for fill in (1, 2, WIDTH):
        sequences = [runner.sequence(slot, prompt.packed, 0, Sampling(seed=slot), 0) for slot in range(fill)]
        step = median_ms(lambda running=sequences: runner.step(running), repeats, device)
        print(f"step with {fill} of {WIDTH} rows {step:.2f} ms")


def bench_codec(checkpoint: Checkpoint, device: str, repeats: int) -> None:
    """Decode of chunks in the stateful mode, one stream."""
    config = checkpoint.config
    decoder = StatefulDecoder(checkpoint.load_codec("float32", device))
    rng = np.random.default_rng(0)
    for frames in (1, 4, 8, 25):
        codes = rng.integers(0, 1024, (1, config.num_codebooks, frames)).astype(np.uint16)
        state = decoder.open()
        ms = median_ms(lambda c=codes, s=state: decoder.decode([s], c), max(8, repeats // 5), device)
        print(f"decode of {frames:2} frames {ms:.1f} ms, {1e3 * frames / config.frame_rate / ms:.1f} times real time")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=None)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    checkpoint = Checkpoint.open(options.model)
    print(f"torch {torch.__version__}, {options.device}, {options.threads} threads")
    bench_ar(checkpoint, options.device, options.repeats)
    bench_codec(checkpoint, options.device, options.repeats)


if __name__ == "__main__":
    main()
