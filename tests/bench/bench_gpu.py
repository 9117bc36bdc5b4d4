"""What a frame and a prefill take on a CUDA device, for a model of the published size with random weights.

    python tests/bench/bench_gpu.py [--quick]

Medians in milliseconds of graph replays, timed by the device.  Floor: the bytes of weights that a frame reads, over the
bandwidth of a large copy.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from inference.config import ArkttsConfig
from inference.cuda.frame import KernelFrame
from inference.cuda.graph_runner import GraphRunner
from inference.cuda.graphs import Graph
from inference.cuda.launches import Tile, Tiles
from inference.dual_ar import DualAR
from inference.messages import Sampling

SLOTS = 16


def model_of_seed() -> DualAR:
    """bfloat16, 601 M parameters; widths of the published checkpoint."""
    torch.manual_seed(0)
    config = ArkttsConfig(dtype="bfloat16")
    with torch.device("cuda"):
        model = DualAR(config).to(torch.bfloat16)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.02)
    return model.freeze()


def median_ms(work: Callable[[], object], repeats: int = 60) -> float:
    """Median milliseconds on the device."""
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[repeats // 5 :])


def bandwidth() -> float:
    """Bytes a millisecond, read and written, of a large copy."""
    source = torch.randn(2**29, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() * 4 / median_ms(lambda: target.copy_(source), 12)


def bytes_of_frame(model: DualAR) -> int:
    """Weights that are read: slow layers and heads once, the fast AR once a pass."""
    passes = model.config.num_codebooks - 1
    slow = sum(each.numel() for each in model.layers.parameters()) + model.semantic_head.numel()
    fast = sum(each.numel() for each in model.fast_layers.parameters()) + model.fast_output.weight.numel()
    return 2 * (slow + passes * fast)


def prompt(columns: int) -> np.ndarray:
    """Text tokens."""
    packed = np.zeros((11, columns), dtype=np.int64)
    packed[0] = np.random.default_rng(0).integers(0, 150_000, columns)
    return packed


def bench_frames(runner: GraphRunner, width: int, name: str) -> None:
    """Host-launched steps, with the copies in and out, at some lengths."""
    for length in (64, 512, 1900):
        running = [runner.sequence(slot, prompt(length), 0, Sampling(seed=slot), 0) for slot in range(width)]
        step = median_ms(lambda running=running: runner.launch(running))
        print(f"{name}: step at batch {width}, {length} positions: {step:.3f} ms", flush=True)


def bench_shares(runner: GraphRunner, tiles: Tiles, name: str) -> None:
    """Graphs of a frame's parts, of kernels."""
    width, state = runner.width, runner.state
    frame = KernelFrame(runner.model, width, state, runner.kv, runner.noise, True, tiles)
    rows = torch.arange(width, device="cuda")
    draws = 1 - torch.rand((width, runner.noise.size), device="cuda")
    made = torch.zeros((width, runner.books + 1), dtype=torch.int64, device="cuda")

    def draws_of_fast() -> None:
        for book in range(1, runner.books):
            frame._draw_code(book, rows, draws, made)

    def fast() -> None:
        for book in range(1, runner.books):
            frame._run_fast(book)

    parts = {
        "whole": lambda: frame(rows, draws, made),
        "slow layers": lambda: frame._run_slow(rows),
        "head and semantic draw": lambda: frame._draw_semantic(rows, draws, made),
        "fast passes with heads": fast,
        "fast draws": draws_of_fast,
    }
    state.lengths.fill_(500)
    pool = torch.cuda.graph_pool_handle()
    figures = []
    for part, work in parts.items():
        graph = Graph(work, pool)
        state.lengths.fill_(500)
        figures.append(f"{part} {median_ms(graph.launch):.3f}")
    print(f"{name}: {', '.join(figures)} ms", flush=True)


def bench_prefills(runner: GraphRunner) -> None:
    """Each size, at its fullest."""
    for size in (32, 64, 128, 256, 512, 1024, 2000):
        packed = prompt(size)
        print(
            f"prefill of {size} positions: {median_ms(lambda packed=packed: runner.prefill(0, packed, 0), 20):.2f} ms",
            flush=True,
        )


VARIANTS = {
    "default": Tiles(),
    "overlap": Tiles(overlap=True),
    "qkv 8": Tiles(qkv=Tile(8, 4)),
    "gate 4": Tiles(gate=Tile(4, 4)),
    "gate 16": Tiles(gate=Tile(16, 8)),
    "down 2": Tiles(down=Tile(2, 4, 1024)),
    "down 8": Tiles(down=Tile(8, 8, 1024)),
    "out 4": Tiles(out=Tile(4, 4)),
    "head 8": Tiles(head=Tile(8, 4)),
    "part 64": Tiles(part=64),
    "part 256": Tiles(part=256),
    "draws 16": Tiles(draw_warps=16),
    "draws 4": Tiles(draw_warps=4),
}


def main() -> None:
    """Print figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without variants of the kernels")
    options = parser.parse_args()
    model, rate = model_of_seed(), bandwidth()
    size = bytes_of_frame(model)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(f"copy {rate / 1e9:.2f} TB/s, a frame reads {size / 1e9:.2f} GB, floor {size / rate:.3f} ms", flush=True)
    for kernels in (True, False):
        for width in (4, 1):
            begin = time.perf_counter()
            runner = GraphRunner(model, width, SLOTS, ignore_eos=True, kernels=kernels)
            torch.cuda.synchronize()
            name = "kernels" if kernels else "plain operations"
            print(f"{name}: captured in {time.perf_counter() - begin:.1f} s", flush=True)
            bench_frames(runner, width, name)
            if kernels and width == 4:
                bench_prefills(runner)
                for variant, tiles in VARIANTS.items() if not options.quick else [("default", Tiles())]:
                    for overlap in {tiles.overlap, True}:
                        bench_shares(runner, replace(tiles, overlap=overlap), f"{variant}, overlap {overlap}")
    print(f"most memory taken: {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
