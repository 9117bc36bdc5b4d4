"""What goes wrong comes to the Python client's user as an error of its class."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from protocol_session import Peer
from scripted_engine import ScriptedEngine
from talking import (
    PATIENCE_S,
    TEXT,
    first_chunk,
    no_task_is_left,  # noqa: F401
    push,
    talking,
    url_of,
)
from websockets.asyncio.server import ServerConnection, serve

from gateway.keys import ApiKeys
from gateway.server import shut_down
from gateway.settings import Settings
from protocol.client import ConnectError, ContextFailed, ProtocolViolation, RefusedError, connect


async def test_an_error_of_the_text_ends_the_speech(gateway):
    async def broken() -> AsyncIterator[str]:
        yield TEXT
        raise ValueError("the model has died")

    async with talking(gateway) as client:
        with pytest.raises(ValueError, match="the model has died"):
            async for _ in client.say(broken()):
                pass


async def test_refusals_are_told(gateway):
    with pytest.raises(RefusedError, match="sample_rate") as caught:
        await connect(url_of(gateway), sample_rate=12345)
    assert caught.value.code == "bad_value"
    async with talking(gateway) as client:
        with pytest.raises(ContextFailed) as failed:
            async for _ in client.say(TEXT, voice="nobody"):
                pass
        assert failed.value.code == "unknown_voice"
        with pytest.raises(RefusedError) as refused:
            async for _ in client.say(TEXT, seed=-1):
                pass
        assert refused.value.code == "bad_value"
        assert [chunk async for chunk in client.say("Hello.")]


async def test_a_failure_comes_after_the_audio_before_it(run_gateway):
    engine = ScriptedEngine(fail={"One sentence only.": (1, "engine_failed")})
    async with run_gateway(engine) as gateway, talking(gateway) as client:
        context = client.context()
        await push(context, "One sentence only.")
        assert (await first_chunk(context)).start == 0
        with pytest.raises(ContextFailed) as failed:
            await first_chunk(context)
        assert failed.value.code == "engine_failed" and context.result is None


async def test_there_must_be_a_gateway(gateway):
    with pytest.raises(ConnectError) as unreachable:
        await connect("ws://127.0.0.1:9/v1/stream")
    assert unreachable.value.code == "unreachable"
    with pytest.raises(ConnectError) as missing:
        await connect(f"ws://127.0.0.1:{gateway.port}/nowhere")
    assert missing.value.code == "not_found"


async def test_a_server_that_ends_says_why(run_gateway):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, talking(gateway) as client:
        context = client.context()
        await context.send(TEXT)
        await first_chunk(context)
        await shut_down(gateway.runner.app)
        with pytest.raises(ContextFailed) as failed:
            await first_chunk(context)
        assert failed.value.code == "shutting_down"


async def test_a_key_is_sent_and_a_wrong_one_refused(run_gateway):
    settings = Settings(keys=ApiKeys({"someone": "right"}))
    async with run_gateway(ScriptedEngine(), settings) as gateway:
        async with talking(gateway, api_key="right") as client:
            assert [chunk async for chunk in client.say("Hello.")]
        for key in ("wrong", None):
            with pytest.raises(ConnectError) as refused:
                await connect(url_of(gateway), api_key=key)
            assert refused.value.code == "unauthorized" and "wrong" not in str(refused.value)


async def test_a_server_that_breaks_the_protocol_is_left():
    ready = Peer().ready
    configured = {"type": "session.configured", "config": ready["config"]}

    async def serve_nonsense(socket: ServerConnection) -> None:
        await socket.send(json.dumps(ready))
        await socket.recv()
        await socket.send(json.dumps(configured))
        await socket.recv()
        await socket.send(bytes(100))
        await socket.wait_closed()

    async with asyncio.timeout(PATIENCE_S), serve(serve_nonsense, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}") as client:
            with pytest.raises(ProtocolViolation):
                async for _ in client.say("Hello."):
                    pass
            with pytest.raises(ProtocolViolation):
                client.context()


async def test_what_cannot_be_said_is_refused_at_once(gateway):
    with pytest.raises(TypeError):
        connect(url_of(gateway), voice=object())
    with pytest.raises(TypeError, match="framing"):
        connect(url_of(gateway), framing="bare")
    async with talking(gateway) as client:
        with pytest.raises(TypeError):
            client.context(seed=2**70)
        context = client.context()
        for offset in (-1, float("nan"), 1e10):
            with pytest.raises(ValueError, match="playback_offset_ms"):
                await context.cancel(offset)
        await push(context, "Hello.")
        assert [chunk async for chunk in context]
