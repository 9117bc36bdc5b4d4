"""The end of the server: nothing new begins, what is being said is said, and all is over in time."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession
from scripted_engine import ScriptedEngine
from stream_client import StreamClient
from websockets.exceptions import ConnectionClosed, InvalidStatus

from gateway.server import shut_down, wind_down
from gateway.settings import Settings

TEXT = "A sentence that is long enough to have some chunks of audio. And one more. "
LONG_S = 60.0  # nothing here lasts so long


@asynccontextmanager
async def winding_down(gateway, grace_s: float = LONG_S):
    """The first signal has come; yields the task that waits for the end."""
    ending = asyncio.create_task(wind_down(gateway.runner.app, grace_s))
    await asyncio.sleep(0)  # it has begun
    yield ending
    async with asyncio.timeout(10):
        await ending


async def closed_with(client: StreamClient) -> int:
    """The close code, all messages before it read."""
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            await client.receive()
    return closed.value.rcvd.code


async def test_what_is_open_goes_on_and_what_is_new_is_refused(run_gateway):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.say("input.text", text=TEXT, context_id="a")
        await client.until_audio()
        async with winding_down(gateway):
            await client.say("input.text", text="Too late.", context_id="b")
            assert (await client.whole("b")).end["code"] == "shutting_down"
            await client.speak("But this still counts.", context_id="a")
            engine.chunk_gate.set()
            heard = await client.whole("a")
            assert heard.end["type"] == "session.done" and heard.text == TEXT + "But this still counts."
            assert await closed_with(client) == 1012
        assert client.others[-1]["code"] == "shutting_down" and client.others[-1]["fatal"] is True


async def test_idle_connections_end_at_once_and_new_ones_are_refused(run_gateway):
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, await gateway.client() as idle, await gateway.client() as busy:
        await busy.say("input.text", text="It goes", context_id="a")
        await busy.pong()
        async with winding_down(gateway), ClientSession() as http:
            assert await closed_with(idle) == 1012
            answer = await http.get(f"http://127.0.0.1:{gateway.port}/readyz")
            assert answer.status == 503 and (await answer.json())["status"] == "shutting_down"
            assert (await http.get(f"http://127.0.0.1:{gateway.port}/healthz")).status == 200
            with pytest.raises(InvalidStatus) as refused:
                await gateway.client()
            assert refused.value.response.status_code == 503
            assert refused.value.response.headers["Retry-After"] == "1"
            assert b'"shutting_down"' in refused.value.response.body
            await busy.say("input.done", context_id="a")
            assert (await busy.whole("a")).audio
            assert await closed_with(busy) == 1012


async def test_the_deadline_ends_the_rest(run_gateway):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.speak(TEXT, context_id="a")
        await client.until_audio()
        async with winding_down(gateway, grace_s=0.05) as ending:
            await ending
            await asyncio.gather(shut_down(gateway.runner.app), closing := asyncio.create_task(closed_with(client)))
        assert client.contexts["a"].types[-2:] == ["audio.done", "error"]
        assert client.contexts["a"].end["code"] == "shutting_down"
        assert closing.result() == 1012 and not engine.live


async def test_a_client_that_reads_nothing_does_not_hold_up_the_end(run_gateway):
    engine = ScriptedEngine()
    async with run_gateway(engine, Settings(close_s=0.2)) as gateway:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", gateway.port))
        raw.setblocking(False)
        client = await StreamClient.open(gateway.port, sock=raw, max_queue=1)
        await client.speak(TEXT * 20)
        await engine.until(lambda: any(not granted for _, granted in engine.credits))
        async with asyncio.timeout(5):
            await wind_down(gateway.runner.app, 0.05)
            await shut_down(gateway.runner.app)
        await engine.until(lambda: not engine.live)
        client.socket.transport.abort()
