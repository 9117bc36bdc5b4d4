"""The codec's decode on a GPU: eager and from graphs, float32 and TF32, and how much TF32 adds to the signal.

    python tests/bench/bench_codec.py [--model DIR]

Milliseconds of a call, median, codes to samples in the host's memory.  The error is that of the embedded voice's codes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from inference.checkpoint import Checkpoint
from inference.codec import Codec
from inference.codec_stream import StatefulDecoder
from inference.cuda.codec_graphs import GraphDecoder
from inference.cuda.snake import fuse_snakes

FRAMES, STREAMS = (4, 25, 50), (1, 4)


def set_precision(tf32: bool) -> None:
    """As `codec_matmul_precision` does."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32


def call_ms(decoder: StatefulDecoder | GraphDecoder, streams: int, frames: int, books: int) -> float:
    """Of one call for streams that have begun."""
    codes = np.random.default_rng(0).integers(0, 1024, (streams, books, frames)).astype(np.uint16)
    states, times = [decoder.open() for _ in range(streams)], []
    for _ in range(30):
        begin = time.perf_counter()
        decoder.decode(states, codes)
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times[5:])


def row(name: str, decoder: StatefulDecoder | GraphDecoder, books: int) -> None:
    """A line of the table."""
    figures = [call_ms(decoder, streams, frames, books) for streams in STREAMS for frames in FRAMES]
    print(f"| {name} | " + " | ".join(f"{ms:.2f}" for ms in figures) + " |", flush=True)


def table(checkpoint: Checkpoint) -> None:
    """Of what each change gains."""
    config = checkpoint.config
    print("| | " + " | ".join(f"{s} x {f}" for s in STREAMS for f in FRAMES) + " |")
    for tf32, name in ((False, "float32"), (True, "TF32")):
        set_precision(tf32)
        codec = checkpoint.load_codec("float32", "cuda")
        row(f"{name}, eager", StatefulDecoder(codec), config.num_codebooks)
        row(f"{name}, graphs", _graphs(codec, config.num_codebooks), config.num_codebooks)
        fuse_snakes(codec)
        row(f"{name}, graphs, Snake fused", _graphs(codec, config.num_codebooks), config.num_codebooks)
        torch.cuda.empty_cache()


def _graphs(codec: Codec, books: int) -> GraphDecoder:
    begin = time.perf_counter()
    decoder = GraphDecoder(codec, books, max(STREAMS))
    print(f"captured in {time.perf_counter() - begin:.1f} s", file=sys.stderr)
    return decoder


def errors() -> None:
    """Signal to error of TF32 against float32 for what the embedded voices say in their recordings."""
    checkpoint = Checkpoint.open(None)
    decoded = []
    for tf32 in (False, True):
        set_precision(tf32)
        codec = checkpoint.load_codec("float32", "cuda")
        decoder = GraphDecoder(codec, checkpoint.config.num_codebooks, 1)
        decoded.append(
            {
                name: decoder.decode([decoder.open()], each.reference.codes[None])
                for name, each in checkpoint.voices().items()
            }
        )
    for name, exact in decoded[0].items():
        error = ((decoded[1][name] - exact) ** 2).sum()
        print(f"{name}: TF32 is {10 * np.log10((exact**2).sum() / error):.1f} dB above its error")


def main() -> None:
    """Print table and errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=None)
    table(Checkpoint.open(parser.parse_args().model))
    errors()


if __name__ == "__main__":
    main()
