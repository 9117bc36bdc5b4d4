"""What connections cost that only wait: memory, time, and no compressor."""

from __future__ import annotations

import asyncio
import sys

import pytest
from scripted_process import scripted_process
from stream_client import StreamClient

CONNECTIONS = 500
MOST_BYTES = 40e6  # of all of them


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_idle_connections_cost_little_though_they_offer_compression():
    async with scripted_process() as gateway:
        async with await StreamClient.open(gateway.port) as client:
            await client.speak("Hello.")
            await client.whole("_0")
        base, files = gateway.resident_bytes, gateway.open_files
        clients = [await StreamClient.open(gateway.port, compression="deflate") for _ in range(CONNECTIONS)]
        assert gateway.open_files - files == CONNECTIONS
        assert not any(client.socket.protocol.extensions for client in clients)
        grown, cpu_s = gateway.resident_bytes - base, gateway.cpu_s
        await asyncio.sleep(1.0)
        share = gateway.cpu_s - cpu_s
        print(f"{CONNECTIONS} idle connections: {grown / 1e6:.1f} MB, {share:.0%} of a core")
        assert grown < MOST_BYTES
        assert share < 0.25
        for client in clients:
            client.socket.transport.abort()
        while gateway.open_files > files:
            await asyncio.sleep(0.02)
