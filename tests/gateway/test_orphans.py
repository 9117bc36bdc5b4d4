"""Stages end soon after the gateway that started them, whatever it died of and whatever they are doing."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from checkpoints import write_checkpoint

START_S = 90.0
SOON_S = 5.0  # importing PyTorch and a second's grace, on a busy machine

SPEAKING = """
import asyncio, sys
from pathlib import Path
from gateway.engine.engine import Engine
from inference.messages import Sampling, Submit

async def main():
    engine = Engine(sys.argv[1], Path("deploy/audio8_tts.yaml"), "cpu", "warning")
    print("starts", flush=True)
    await engine.start()
    stream = engine.submit(Submit(1, "hello", Sampling(max_new_tokens=2000), listener=1))
    async for _ in stream:
        print("speaks", flush=True)

asyncio.run(main())
"""


@asynccontextmanager
async def gateway(model: Path):
    """A process that starts the engine and speaks; it tells when."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SPEAKING, str(model), stdout=PIPE, cwd=Path(__file__).parents[2]
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def stages_of(process) -> list[psutil.Process]:
    """Once there are both."""
    async with asyncio.timeout(START_S):
        while len(stages := psutil.Process(process.pid).children()) < 2:
            await asyncio.sleep(0.01)
    return stages


@pytest.mark.parametrize("when", ["starts", "speaks"])
async def test_a_killed_gateway_leaves_no_stage(tmp_path: Path, when: str):
    async with gateway(write_checkpoint(tmp_path)) as process:
        async with asyncio.timeout(START_S):
            while await process.stdout.readline() != f"{when}\n".encode():
                pass
        stages = await stages_of(process)
        process.send_signal(signal.SIGKILL)
        _, left = await asyncio.to_thread(psutil.wait_procs, stages, SOON_S)
        assert not left
