"""Clients of the Python SDK, for tests: connected to a gateway of the test's own, and never waiting for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from scripted_engine import ScriptedEngine

from protocol.client import AudioChunk, Client, SpeechContext, connect

PATIENCE_S = 20.0
TEXT = "The first sentence is a long one that is spoken. The second sentence is spoken after it, in time."
LONG = "This sentence is one of very many that are said. " * 400


@pytest.fixture(autouse=True)
async def no_task_is_left() -> AsyncIterator[None]:
    """Whatever a test does to its client."""
    yield
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith(("speech client", "say"))]


def url_of(gateway) -> str:
    """Where the gateway listens."""
    return f"ws://127.0.0.1:{gateway.port}/v1/stream"


@asynccontextmanager
async def talking(gateway, **config: object) -> AsyncIterator[Client]:
    """A client whose test does not wait for ever."""
    async with asyncio.timeout(PATIENCE_S), connect(url_of(gateway), **config) as client:
        yield client


def spoken(engine: ScriptedEngine) -> list[str]:
    """What the engine was given."""
    return [request.text for request in engine.submitted]


async def tokens(text: str = TEXT) -> AsyncIterator[str]:
    """As a language model sends them."""
    for start in range(0, len(text), 3):
        yield text[start : start + 3]


async def push(context: SpeechContext, text: str) -> None:
    """All of a text, and its end."""
    await context.send(text)
    await context.done()


async def first_chunk(context: SpeechContext) -> AudioChunk:
    """The next one."""
    return await anext(context)
