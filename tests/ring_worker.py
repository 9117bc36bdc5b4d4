"""The other end of a connector, in a process of its own: `python ring_worker.py ROLE SEED COUNT FD FD FD`.

After a line on stdout, `write` puts COUNT records of `made(SEED, i)`; `read` gets COUNT and compares each with `made`.
"""

from __future__ import annotations

import random
import sys
import time

import numpy as np

from inference.connector import SharedMemoryConnector
from inference.records import CodesChunk, Record, StreamAborted, StreamOpened

CODEBOOKS = 10
_NOISE = np.random.default_rng(0).integers(0, 4096, CODEBOOKS * 4096, dtype=np.uint16)


def made(seed: int, index: int) -> Record:
    """Record `index` of a run: mostly chunks of 0 to 25 frames, at times a long one, and openings and aborts."""
    rng = random.Random(seed * 1_000_003 + index)
    kind = rng.random()
    if kind < 0.1:
        return StreamOpened(index, rng.random())
    if kind < 0.2:
        return StreamAborted(index)
    frames = rng.randrange(300) if kind > 0.99 else rng.randrange(26)
    start = rng.randrange(len(_NOISE) - CODEBOOKS * frames)
    codes = _NOISE[start : start + CODEBOOKS * frames].reshape(CODEBOOKS, frames)
    return CodesChunk(rng.randrange(2**64), index, codes, rng.random() < 0.5)


def same(one: Record, other: Record) -> bool:
    """Equality, of the codes too."""
    if not isinstance(one, CodesChunk) or not isinstance(other, CodesChunk):
        return one == other
    head = (one.stream_id, one.first_frame, one.last) == (other.stream_id, other.first_frame, other.last)
    return head and one.codes.dtype == other.codes.dtype and np.array_equal(one.codes, other.codes)


def write(connector: SharedMemoryConnector, seed: int, count: int) -> None:
    """Put records 0 … count - 1, again while the ring is full."""
    for index in range(count):
        record = made(seed, index)
        while not connector.put(record):
            time.sleep(0)


def read(connector: SharedMemoryConnector, seed: int, count: int) -> None:
    """Get records 0 … count - 1, sleeping while there is none."""
    for index in range(count):
        while (record := connector.get()) is None:
            connector.wait()
        assert same(record, made(seed, index)), f"record {index} is not what was put"


def main() -> None:
    role, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    connector = SharedMemoryConnector.attach(tuple(map(int, sys.argv[4:7])), sleep_s=0.01)
    print("begins", flush=True)
    if role == "read":
        read(connector, seed, count)
    else:
        write(connector, seed, count)


if __name__ == "__main__":
    main()
