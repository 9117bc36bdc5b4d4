"""A gateway over a scripted engine, in a process of its own: its memory and its time are nobody else's."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from scripted_engine import ScriptedEngine

from gateway import logs
from gateway.server import make_app
from gateway.settings import Settings
from protocol.limits import Limits

_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class ScriptedProcess:
    """Where it listens, and how it does."""

    port: int
    process: asyncio.subprocess.Process

    @property
    def resident_bytes(self) -> int:
        """Memory that is its own."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))

    @property
    def open_files(self) -> int:
        """Descriptors that it holds."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @property
    def cpu_s(self) -> float:
        """Time that it has had of the processor."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.asynccontextmanager
async def scripted_process(
    speed: float | None = None, frames: int | None = None, **limits: float
) -> AsyncIterator[ScriptedProcess]:
    """`speed`: frames a second; `frames`: of each segment, None as its text's length has it; `limits` that differ."""
    told = json.dumps({"speed": speed, "frames": frames, "limits": limits})
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(_ROOT), *filter(None, sys.path)])}
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, told, env=environment, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(30):
            port = int(await process.stdout.readline())
        yield ScriptedProcess(port, process)
    finally:
        process.kill()
        await process.wait()


async def _serve(speed: float | None, frames: int | None, limits: dict[str, float]) -> None:
    engine = ScriptedEngine(speed, **({} if frames is None else {"frames": lambda text: frames}))
    runner = web.AppRunner(make_app(engine, Settings(limits=Limits(**limits))), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    logs.configure("warning")
    asyncio.run(_serve(**json.loads(sys.argv[1])))
