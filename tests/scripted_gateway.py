"""A gateway over a scripted engine as a process of its own, so that its memory, files and processor time are its own.

    python tests/scripted_gateway.py [--realtime | --speed FRAMES] [--frames N] [--limit NAME=VALUE] [--core N]

It prints `ready PORT` and tells what it holds at `/debug/state`.  With `--realtime` each chunk comes when it is needed,
as from a model that is just fast enough, with `--speed` so many frames a second are made of each segment; else all
comes at once.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import time
import urllib.request
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from aiohttp import web  # noqa: E402
from scripted_engine import FRAME_SAMPLES, ScriptedEngine, stamped  # noqa: E402

from gateway import logs  # noqa: E402
from gateway.limit_option import limits_with  # noqa: E402
from gateway.server import _GUARD, make_app, shut_down  # noqa: E402
from gateway.settings import Settings  # noqa: E402
from inference.channel import Unframer, frame  # noqa: E402
from inference.messages import Submit  # noqa: E402

LEAD_S = 0.25
REMEMBERED = 64
LIMITS = ("write_stall_s=3", "ping_interval_s=1", "ping_timeout_s=2", "handshake_s=2")
_LOOK_EVERY_S = 0.005


class ForgetfulEngine(ScriptedEngine):
    """Can run for ever: it keeps only the last of what was asked.

    `lead_s`: each chunk but the first comes so long before its listener would be dry; None: as `options` have it.
    Chunks travel as bytes, as they do from the codec's process.
    """

    def __init__(self, lead_s: float | None, **options: object) -> None:
        super().__init__(waveform=stamped, **options)
        self._lead_s = lead_s
        for name in ("submitted", "cancelled", "completed", "credits", "released"):
            setattr(self, name, deque(maxlen=REMEMBERED))

    async def pause(self, request: Submit, first: int, size: int, began: float) -> None:
        """Before a chunk of `size` frames from `first` on."""
        if self._lead_s is None:
            return await super().pause(request, first, size, began)
        due = 0.0
        if first:
            due = began + first * FRAME_SAMPLES / self.info.sample_rate - self._lead_s - time.monotonic()
        await asyncio.sleep(max(0.0, due))

    def carried(self, message: object) -> object:
        """What arrives of a message."""
        return Unframer().feed(frame(message))[0]


class LoopWatch:
    """How long the loop has kept others waiting, by its own work and because other programs had the processor."""

    def __init__(self) -> None:
        self._own_s = self._noise_s = 0.0

    async def run(self) -> None:
        """Look again and again."""
        while True:
            due, used = time.monotonic() + _LOOK_EVERY_S, time.process_time()
            await asyncio.sleep(_LOOK_EVERY_S)
            late, used = time.monotonic() - due, time.process_time() - used
            self._own_s, self._noise_s = max(self._own_s, min(late, used)), max(self._noise_s, late - used)

    def take(self) -> dict[str, float]:
        """The longest since the last call."""
        longest = {"lag_s": self._own_s, "noise_s": self._noise_s}
        self._own_s = self._noise_s = 0.0
        return longest


def _state(engine: ForgetfulEngine, watch: LoopWatch) -> dict[str, float]:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "rss": pages * resource.getpagesize(),
        "fds": len(os.listdir("/proc/self/fd")),
        "tasks": len(asyncio.all_tasks()),
        "streams": len(engine.live),
        **watch.take(),
        "cpu_s": usage.ru_utime + usage.ru_stime,
    }


async def _serve(options: argparse.Namespace) -> None:
    frames = {} if options.frames is None else {"frames": lambda text: options.frames}
    engine = ForgetfulEngine(LEAD_S if options.realtime else None, speed=options.speed, **frames)
    app = make_app(engine, Settings(limits=limits_with([*LIMITS, *options.limit]), close_s=1))

    watch = LoopWatch()
    watching = [asyncio.create_task(watch.run())]

    async def state(request: web.Request) -> web.Response:
        if "collect" in request.query:
            gc.collect()
        return web.json_response(_state(engine, watch))

    app.router.add_get("/debug/state", state)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    watching.append(asyncio.create_task(app[_GUARD].watch(lambda: runner.server.connections)))
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(f"ready {runner.addresses[0][1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until whoever started it closes its end
    for task in watching:
        task.cancel()
    await shut_down(app)
    await runner.cleanup()


class GatewayProcess:
    """The running gateway, for whoever started it."""

    def __init__(self, port: int, pid: int, log: Path) -> None:
        self.port, self.pid, self._log = port, pid, log

    @property
    def log(self) -> str:
        """All that it has written to its standard error."""
        return self._log.read_text()

    def state(self, collect: bool = False) -> dict[str, float]:
        """rss [bytes], fds, tasks, streams, cpu_s; lag_s and noise_s of `LoopWatch`.

        `collect`: after a garbage collection, which stops everything for a while.
        """
        url = f"http://127.0.0.1:{self.port}/debug/state{'?collect' if collect else ''}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)

    def forget_peak(self) -> None:
        """`peak` counts from now on."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    @property
    def peak(self) -> int:
        """Most bytes that were resident at once."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])

    @property
    def files(self) -> int:
        """Descriptors that it holds; unlike `state` this asks nothing of it."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def settled(self, wanted: dict[str, float], patience_s: float = 10) -> dict[str, float]:
        """The state once it holds no more files, tasks and streams than `wanted`; fails if that does not happen."""
        until = time.monotonic() + patience_s
        while any((state := self.state())[key] > wanted[key] for key in ("fds", "tasks", "streams")):
            assert time.monotonic() < until, f"it still holds {state}, before it was {wanted}"
            time.sleep(0.05)
        return state


@contextmanager
def scripted_gateway(log: Path, *arguments: str) -> Iterator[GatewayProcess]:
    """Start one and end it."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, __file__, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
    try:
        word, port = process.stdout.readline().split()
        assert word == "ready"
        yield GatewayProcess(int(port), process.pid, log)
        process.stdin.close()
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def main() -> None:
    """Serve until the standard input is closed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--speed", type=float, metavar="FRAMES", help="frames a second")
    parser.add_argument("--frames", type=int, help="of each segment, whatever its text")
    parser.add_argument("--limit", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--core", type=int, help="run on this core alone")
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    logs.configure("info")
    asyncio.run(_serve(options), debug=False)


if __name__ == "__main__":
    main()
