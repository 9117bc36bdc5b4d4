"""What the gateway itself costs: realtime listeners over a scripted stage, beside a bare push of the same bytes.

    python tests/bench/bench_outbound.py [--listeners 64] [--seconds 30] [--server-core 0] [--client-core 1]

Each server runs alone on one core, all listeners in this process on another.  Every chunk begins with the time of its
making, so *latency* is the time from there to the last byte's arrival in the client, its event loop and the pickling
between the stages' processes included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS.parent), str(TESTS)]

from scripted_engine import FRAME_SAMPLES, made_at, stamped  # noqa: E402  the tests' helpers are no package
from scripted_gateway import LEAD_S, scripted_gateway  # noqa: E402

RATE = 44100
TEXT = "one text without a stop that lasts for one and a half minutes or so " * 14
CONFIG = {"type": "session.config", "split_granularity": "none", "max_new_tokens": 2048}
START_OVER_S = 3.0  # listeners begin one after the other within this time
_TICKS = os.sysconf("SC_CLK_TCK")


async def listen(url: str, wait_s: float, late: list[float], until: float) -> None:
    """One listener, from `wait_s` on; `late` gets the latency of each chunk."""
    await asyncio.sleep(wait_s)
    async with connect(url, max_size=None, compression=None) as socket:
        await socket.send(json.dumps(CONFIG))
        while time.monotonic() < until:
            await socket.send(json.dumps({"type": "input.text", "text": TEXT}))
            await socket.send('{"type":"input.done"}')
            async for message in socket:
                now = time.monotonic()
                if isinstance(message, bytes):
                    late.append(now - made_at(np.frombuffer(message, "<i2", 8)))
                elif '"session.done"' in message or now > until:
                    break


async def measure(url: str, pid: int, listeners: int, seconds: float) -> dict[str, float]:
    """Latencies, and the share of a core that process `pid` needs, over `seconds` with all listeners."""
    late: list[float] = []
    until = time.monotonic() + START_OVER_S + seconds
    async with asyncio.TaskGroup() as tasks:
        for number in range(listeners):
            tasks.create_task(listen(url, START_OVER_S * number / listeners, late, until))
        await asyncio.sleep(START_OVER_S)
        late.clear()
        used, begin = _cpu_s(pid), time.monotonic()
        await asyncio.sleep(seconds)
        share, chunks = (_cpu_s(pid) - used) / (time.monotonic() - begin), sorted(late)
    return {
        "chunks": len(chunks),
        "latency_median_ms": round(1e3 * statistics.median(chunks), 2),
        "latency_p99_ms": round(1e3 * chunks[int(0.99 * (len(chunks) - 1))], 2),
        "latency_max_ms": round(1e3 * chunks[-1], 2),
        "cpu_of_a_core": round(share, 4),
    }


async def push() -> None:
    """The bare server: the same chunks at the same times, nothing else."""

    async def speak(socket: ServerConnection) -> None:
        async for message in socket:
            if '"input.done"' in message:
                await _push_chunks(socket)
                await socket.send('{"type":"session.done"}')

    async with serve(speak, "127.0.0.1", 0, compression=None, max_size=None) as server:
        print(f"ready {server.sockets[0].getsockname()[1]}", flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def _push_chunks(socket: ServerConnection) -> None:
    began, first, total = time.monotonic(), 0, 2 * len(TEXT)
    while first < total:
        size = min(25 if first else 4, total - first)
        due = began + first * FRAME_SAMPLES / RATE - LEAD_S if first else began
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        samples = stamped(first * FRAME_SAMPLES, size * FRAME_SAMPLES)
        await socket.send((samples * 32767).astype("<i2").tobytes())
        first += size


@contextmanager
def bare_server(core: int) -> Iterator[tuple[str, int]]:
    """(url, pid) of a process that runs `push`."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--push", "--server-core", str(core)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield f"ws://127.0.0.1:{process.stdout.readline().split()[1]}", process.pid
    finally:
        process.kill()
        process.wait()


def _cpu_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS


def main() -> None:
    """Print a line of JSON for the gateway, one for the bare server, and one with the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listeners", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--server-core", type=int, default=0)
    parser.add_argument("--client-core", type=int, default=1)
    parser.add_argument("--push", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.push:
        os.sched_setaffinity(0, {options.server_core})
        asyncio.run(push())
        return
    os.sched_setaffinity(0, {options.client_core})
    with tempfile.TemporaryDirectory() as directory:
        core = str(options.server_core)
        with scripted_gateway(Path(directory) / "log", "--realtime", "--core", core) as gateway:
            url = f"ws://127.0.0.1:{gateway.port}/v1/stream"
            ours = asyncio.run(measure(url, gateway.pid, options.listeners, options.seconds))
    print(json.dumps({"server": "gateway", "listeners": options.listeners, **ours}), flush=True)
    with bare_server(options.server_core) as (url, pid):
        bare = asyncio.run(measure(url, pid, options.listeners, options.seconds))
    print(json.dumps({"server": "bare push", "listeners": options.listeners, **bare}), flush=True)
    ratios = {key: round(ours[key] / bare[key], 2) for key in ours if key != "chunks"}
    print(json.dumps({"server": "gateway / bare push", **ratios}))


if __name__ == "__main__":
    main()
