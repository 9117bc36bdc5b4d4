"""The whole process on a tiny checkpoint of random weights: it starts, speaks, and ends cleanly."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import sys
from asyncio.subprocess import PIPE
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession
from checkpoints import write_checkpoint
from stream_client import StreamClient
from websockets.exceptions import ConnectionClosed

START_S = 90.0


@asynccontextmanager
async def serving(model: Path, *options: object):
    """`audio8-gateway serve` in a process of its own, on a free port; yields the process."""
    arguments = ("--model", model, "--port", "0", "--device", "cpu", *options)
    command = map(str, (sys.executable, "-m", "gateway.cli", "serve", *arguments))
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
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


def _stages(process) -> list[Path]:
    """The places of the processes that it has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [Path("/proc", child) for child in children]


def _runs(place: Path) -> bool:
    try:
        return place.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def _all_gone(places: list[Path]) -> None:
    async with asyncio.timeout(10):
        while any(map(_runs, places)):
            await asyncio.sleep(0.02)


async def test_it_speaks_and_ends_with_its_clients_told(tmp_path: Path):
    model = write_checkpoint(tmp_path)
    async with serving(model, "--shutdown-grace", "0.5") as process:
        port = await _ready_port(process)
        async with ClientSession() as http, http.get(f"http://127.0.0.1:{port}/readyz") as answer:
            assert answer.status == 200 and (await answer.json())["replicas"][0]["stages"][0]["device"] == "cpu"
        async with await StreamClient.open(port) as client:
            await client.say("session.config", max_new_tokens=10)
            await client.speak("A sentence of random sounds. And another one of them.")
            heard = await client.whole("_0")
            assert heard.end["type"] == "session.done" and heard.audio
            await client.say("input.text", text="No end of", context_id="a")
            await client.pong()
            stages = _stages(process)
            assert len(stages) == 2
            process.send_signal(signal.SIGTERM)
            await client.until("error", code="shutting_down", context_id="a")
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    await client.receive()
            assert closed.value.rcvd.code == 1012
        async with asyncio.timeout(10):
            assert await process.wait() == 0
        assert not any(map(_runs, stages))
        with socket.create_server(("127.0.0.1", port)):
            pass  # the port is free again


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_what_is_being_said_is_said_unless_a_second_signal_comes(tmp_path: Path, number: signal.Signals):
    model = write_checkpoint(tmp_path)
    async with serving(model, "--shutdown-grace", "60") as process:
        port = await _ready_port(process)
        async with await StreamClient.open(port) as client, await StreamClient.open(port) as other:
            await client.say("session.config", max_new_tokens=10)
            await client.say("input.text", text="A sentence of random sounds. ")
            await other.say("input.text", text="No end of")
            await client.until_audio()
            stages = _stages(process)
            process.send_signal(number)
            while b"shutting down" not in await process.stderr.readline():
                pass
            await client.speak("And its end.")
            assert (await client.whole("_0")).end["type"] == "session.done"
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    await client.receive()
            assert closed.value.rcvd.code == 1012
            await other.pong()
            process.send_signal(number)
            async with asyncio.timeout(2):
                assert await process.wait() == 128 + number
            await _all_gone(stages)


async def test_what_cannot_start_says_why(tmp_path: Path):
    broken = tmp_path / "deploy.yaml"
    broken.write_text("async_chunk: maybe\n")
    async with serving(tmp_path, "--deploy-config", broken) as process:
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
