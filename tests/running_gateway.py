"""A gateway in the test's own loop, mostly over a scripted engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web
from scripted_engine import ScriptedEngine
from stream_client import StreamClient

from gateway.engine.engine import Engine
from gateway.http.listening import tls_context
from gateway.server import make_app, shut_down
from gateway.settings import Settings


@dataclass
class RunningGateway:
    """Where it listens and what it runs on."""

    port: int
    engine: ScriptedEngine | Engine
    runner: web.AppRunner
    scheme: str = "http"

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, over TLS `https://localhost:PORT`."""
        host = "127.0.0.1" if self.scheme == "http" else "localhost"
        return f"{self.scheme}://{host}:{self.port}"

    async def client(self, **options: object) -> StreamClient:
        """Connected, `session.ready` read."""
        return await StreamClient.open(self.port, **options)


@asynccontextmanager
async def running(
    engine: ScriptedEngine | Engine,
    settings: Settings | None = None,
    port: int = 0,
    tls: tuple[Path, Path] | None = None,
    **options: object,
) -> AsyncIterator[RunningGateway]:
    """Start, and clean up whatever the test left; `port` 0: any that is free, `tls`: certificate and key, `options` of
    `make_app`.

    A real engine has been started by the caller.
    """
    runner = web.AppRunner(make_app(engine, settings or Settings(), **options), access_log=None)
    await runner.setup()
    ssl_context = tls_context(*tls) if tls else None
    await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True, ssl_context=ssl_context).start()
    try:
        yield RunningGateway(runner.addresses[0][1], engine, runner, "https" if tls else "http")
    finally:
        await shut_down(runner.app)
        await runner.cleanup()
        await engine.close()


@pytest.fixture
def run_gateway():
    """`async with run_gateway(engine, settings) as gateway`"""
    return running


@pytest.fixture
async def gateway() -> AsyncIterator[RunningGateway]:
    """The plain one: default settings, an engine as fast as the loop."""
    async with running(ScriptedEngine()) as gateway:
        yield gateway
