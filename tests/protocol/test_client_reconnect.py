"""The Python client when its connection is lost: what was not spoken is said again, nothing is said twice."""

from __future__ import annotations

import asyncio

import pytest
from scripted_engine import ScriptedEngine
from talking import (
    LONG,
    TEXT,
    first_chunk,
    no_task_is_left,  # noqa: F401
    push,
    spoken,
    talking,
    url_of,
)

from gateway.server import shut_down
from gateway.settings import Settings
from protocol.client import ConnectError, ConnectionLost, connect
from protocol.limits import Limits


def cut(gateway) -> None:
    """The server's side of every connection breaks off."""
    for connection in list(gateway.runner.server.connections):
        connection.transport.abort()


async def test_what_was_not_spoken_is_said_on_a_new_connection(run_gateway):
    engine = ScriptedEngine()
    engine.gate.clear()
    async with run_gateway(engine) as gateway, talking(gateway) as client:
        context = client.context()
        pushing = asyncio.create_task(push(context, LONG))
        await engine.until(lambda: engine.submitted)
        cut(gateway)
        await engine.until(lambda: not engine.live)
        before = len(engine.submitted)
        engine.gate.set()
        assert [chunk async for chunk in context]
        await pushing
        assert context.result.reason == "done" and context.heard() == (LONG, "")
        assert " ".join(spoken(engine)[before:]) == LONG.strip()


async def test_what_was_spoken_in_part_is_not_said_again(run_gateway):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, talking(gateway) as client:
        context = client.context()
        await context.send(TEXT)
        await first_chunk(context)
        cut(gateway)
        with pytest.raises(ConnectionLost) as lost:
            await first_chunk(context)
        assert lost.value.code == "connection_lost"
        assert "".join(context.heard()) == TEXT
        engine.chunk_gate.set()
        assert [chunk async for chunk in client.say("Hello again.")]


async def test_a_client_that_was_closed_says_so(gateway):
    client = await connect(url_of(gateway))
    context = client.context()
    await client.close()
    with pytest.raises(ConnectionLost):
        await context.send("Hello.")
    with pytest.raises(ConnectionLost):
        client.context()


async def test_a_connection_that_was_idle_too_long_is_renewed(run_gateway):
    settings = Settings(limits=Limits(idle_s=0.05), tick_s=0.01)
    async with run_gateway(ScriptedEngine(), settings) as gateway, talking(gateway) as client:
        first = client.ready.session_id
        await client._link.changed.until(lambda: not client._session.configured)
        assert [chunk async for chunk in client.say("Hello.")]
        assert client.ready.session_id != first


async def test_without_a_server_the_attempts_end(run_gateway, monkeypatch):
    monkeypatch.setattr("protocol.client_connection._FIRST_RETRY_S", 0.01)
    async with run_gateway(ScriptedEngine()) as gateway, talking(gateway) as client:
        await shut_down(gateway.runner.app)
        await gateway.runner.cleanup()
        with pytest.raises(ConnectError) as unreachable:
            async for _ in client.say("Hello."):
                pass
        assert unreachable.value.code == "unreachable"
