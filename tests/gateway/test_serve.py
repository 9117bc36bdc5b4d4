"""The whole process on a tiny checkpoint of random weights: it starts, speaks, and ends cleanly."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession
from checkpoints import write_checkpoint
from stream_client import StreamClient
from websockets.exceptions import ConnectionClosed

from gateway.assets import DEPLOY_CONFIG

START_S = 90.0


SCRIPT = """
import sys
from pathlib import Path
from gateway.options import ServeOptions
from gateway.server import serve
model, deploy = sys.argv[1:]
sys.exit(serve(ServeOptions(model, Path(deploy), "127.0.0.1", 0, "cpu", "info")))
"""


@asynccontextmanager
async def serving(model: Path, deploy: Path = DEPLOY_CONFIG):
    """`serve` in a process of its own, on a free port; yields the process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        SCRIPT,
        str(model),
        str(deploy),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _ready_port(process) -> int:
    async with asyncio.timeout(START_S):
        line = (await process.stdout.readline()).decode()
    match = re.fullmatch(r"ready http://127\.0\.0\.1:(\d+)\n", line)
    assert match, line or (await process.stderr.read()).decode()
    return int(match[1])


async def test_it_speaks_and_ends_with_its_clients_told(tmp_path: Path):
    model = write_checkpoint(tmp_path)
    async with serving(model) as process:
        port = await _ready_port(process)
        async with ClientSession() as http, http.get(f"http://127.0.0.1:{port}/readyz") as answer:
            assert answer.status == 200 and (await answer.json())["stages"][0]["device"] == "cpu"
        async with await StreamClient.open(port) as client:
            await client.say("session.config", max_new_tokens=10)
            await client.speak("A sentence of random sounds. And another one of them.")
            heard = await client.whole("_0")
            assert heard.end["type"] == "session.done" and heard.audio
            await client.say("input.text", text="No end of", context_id="a")
            await client.pong()
            process.send_signal(signal.SIGTERM)
            await client.until("error", code="shutting_down", context_id="a")
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    await client.receive()
            assert closed.value.rcvd.code == 1001
        async with asyncio.timeout(10):
            assert await process.wait() == 0


async def test_what_cannot_start_says_why(tmp_path: Path):
    broken = tmp_path / "deploy.yaml"
    broken.write_text("async_chunk: maybe\n")
    async with serving(tmp_path, broken) as process:
        async with asyncio.timeout(START_S):
            _, errors = await process.communicate()
        assert process.returncode == 1
        assert "async_chunk" in errors.decode() and "Traceback" not in errors.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_while_it_starts_ends_it(tmp_path: Path, number: signal.Signals):
    model = write_checkpoint(tmp_path)
    async with serving(model) as process:
        async with asyncio.timeout(START_S):
            while b"listening" not in await process.stderr.readline():
                pass
        process.send_signal(number)
        async with asyncio.timeout(15):
            assert await process.wait() == 0
        assert await process.stdout.read() == b""


async def test_a_model_that_is_none_is_named_in_one_line(tmp_path: Path):
    async with serving(tmp_path) as process:
        async with asyncio.timeout(START_S):
            _, errors = await process.communicate()
        assert process.returncode == 1
        lines = [line for line in errors.decode().splitlines() if " INFO " not in line]
        assert len(lines) == 1 and lines[0].endswith(f"cannot start: {tmp_path} holds no config.json"), lines
