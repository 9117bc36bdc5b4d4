"""The example program with a language model: it is spoken while it writes, and a line that is typed interrupts it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from running_gateway import running
from scripted_engine import ScriptedEngine

ROOT = Path(__file__).resolve().parents[2]
ANSWER = "Once upon a time, there was a model that talked. Nobody could stop it, and it went on for ever."
PATIENCE_S = 20.0


class Model:
    """An endpoint of OpenAI's chat protocol: says ANSWER word by word, but not its end when it is first asked
    and `holds_first`."""

    def __init__(self, holds_first: bool = False) -> None:
        self.asked: list[dict] = []
        self._holds_first = holds_first
        self.left = asyncio.Event()  # the caller went away

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            await self._say(response, {"role": "assistant"})
            for word in ANSWER.split(" ")[:-1]:
                await self._say(response, {"content": f"{word} "})
            if self._holds_first and len(self.asked) == 1:
                await asyncio.Event().wait()
            await self._say(response, {"content": ANSWER.split(" ")[-1]})
            await response.write(b": a comment\n\ndata: [DONE]\n\n")
        except asyncio.CancelledError:
            self.left.set()
            raise
        return response

    async def _say(self, response: web.StreamResponse, delta: dict) -> None:
        await response.write(b"data: " + json.dumps({"choices": [{"delta": delta}]}).encode() + b"\n\n")


@asynccontextmanager
async def serving(model: Model) -> AsyncIterator[str]:
    """The endpoint's base URL."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", model.answer)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def talking(engine: ScriptedEngine, model: Model, folder: Path) -> AsyncIterator[Process]:
    """The program on a machine whose only player is a program that keeps what it is given."""
    player = folder / "aplay"
    player.write_text(f"#!/bin/sh\nexec cat >> {folder}/played\n")
    player.chmod(0o755)
    (folder / "sounddevice.py").write_text("raise ImportError('not for this test')\n")
    python_path = os.pathsep.join([str(folder), str(ROOT), *filter(None, sys.path)])
    environment = os.environ | {"PATH": f"{folder}:/usr/bin:/bin", "PYTHONPATH": python_path}
    async with asyncio.timeout(PATIENCE_S), running(engine) as gateway, serving(model) as llm:
        command = (sys.executable, str(ROOT / "examples" / "llm.py"), "--llm", llm, "--model", "m")
        url = f"ws://127.0.0.1:{gateway.port}/v1/stream"
        process = await asyncio.create_subprocess_exec(
            *command, "--gateway", url, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


def said(model: Model) -> list[str]:
    """The conversation as the model was told it last, without the system's part."""
    return [message["content"] for message in model.asked[-1]["messages"][1:]]


async def test_an_answer_is_spoken_and_becomes_part_of_the_conversation(tmp_path: Path):
    engine, model = ScriptedEngine(frames=lambda text: 4), Model()
    async with talking(engine, model, tmp_path) as process:
        output, errors = await process.communicate(b"Hello!\nAnd then?\n")
    assert (process.returncode, errors) == (0, b"")
    assert output.decode().splitlines() == [ANSWER, ANSWER]
    assert " ".join(request.text for request in engine.submitted) == f"{ANSWER} {ANSWER}"
    assert said(model) == ["Hello!", ANSWER, "And then?"]
    assert (tmp_path / "played").stat().st_size == len(engine.submitted) * 4 * 2048 * 2


async def test_a_line_that_is_typed_stops_it_and_only_what_was_heard_is_remembered(tmp_path: Path):
    engine, model = ScriptedEngine(), Model(holds_first=True)
    async with talking(engine, model, tmp_path) as process:
        process.stdin.write(b"Hello!\n")
        await wait_for_size(tmp_path / "played")
        process.stdin.write(b"Stop it.\n")
        await model.left.wait()
        _, errors = await process.communicate(b"")
    assert (process.returncode, errors) == (0, b"")
    first, heard, second = said(model)
    assert (first, second) == ("Hello!", "Stop it.")
    assert heard.endswith("—") and ANSWER.startswith(heard[:-1]) and len(heard) < len(ANSWER)


async def wait_for_size(path: Path) -> None:
    """Until something was played."""
    while not path.exists() or not path.stat().st_size:
        await asyncio.sleep(0.01)


async def test_an_endpoint_that_fails_is_told_and_the_talk_goes_on(tmp_path: Path):
    engine, model = ScriptedEngine(), Model()
    model.answer = refuse
    async with talking(engine, model, tmp_path) as process:
        output, errors = await process.communicate(b"Hello!\nAre you there?\n")
    assert process.returncode == 0 and not output
    assert errors.count(b"500") == 2 and b"Traceback" not in errors


async def refuse(_: web.Request) -> web.Response:
    return web.Response(status=500)
