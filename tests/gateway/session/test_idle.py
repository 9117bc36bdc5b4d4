"""What connections cost that only wait: memory, time, and no compressor."""

from __future__ import annotations

import asyncio
import sys

import pytest
from scripted_gateway import scripted_gateway
from stream_client import StreamClient

CONNECTIONS = 500
MOST_BYTES = 40e6  # of all of them


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_idle_connections_cost_little_though_they_offer_compression(tmp_path):
    with scripted_gateway(tmp_path / "log", "--limit", "ping_interval_s=20") as gateway:
        async with await StreamClient.open(gateway.port) as client:
            await client.speak("Hello.")
            await client.whole("_0")
        files, before = gateway.files, gateway.state(collect=True)
        clients = [await StreamClient.open(gateway.port, compression="deflate") for _ in range(CONNECTIONS)]
        assert gateway.files - files == CONNECTIONS
        assert not any(client.socket.protocol.extensions for client in clients)
        held = gateway.state()
        await asyncio.sleep(1.0)
        grown, share = held["rss"] - before["rss"], gateway.state()["cpu_s"] - held["cpu_s"]
        print(f"{CONNECTIONS} idle connections: {grown / 1e6:.1f} MB, {share:.0%} of a core")
        assert grown < MOST_BYTES
        assert share < 0.25
        for client in clients:
            client.socket.transport.abort()
        while gateway.files > files:
            await asyncio.sleep(0.02)
