"""Clients that hardly read, or not at all: they are heard, they cost a bounded amount, and nobody else notices."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from contextlib import asynccontextmanager

import pytest
from scripted_engine import ScriptedEngine
from scripted_gateway import scripted_gateway
from stream_client import StreamClient

from gateway.settings import Settings
from protocol.limits import Limits

SENTENCE = "This is a sentence of exactly sixty characters, count them. "
TEXT = SENTENCE * 20  # about 110 s of audio, 9.7 MB
MESSAGE_BYTES = 2 * 51_200  # of the largest binary message
SEND_BUFFER_BYTES = 2 * 128 * 1024  # the kernel doubles what it is asked for
CLIENT_BYTES = 256 * 1024 + MESSAGE_BYTES  # what the client's library reads ahead of its program
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@asynccontextmanager
async def stalled_client(port: int, receive_buffer: int):
    """Takes from the network what its buffers hold, and no more before it is read."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    raw.connect(("127.0.0.1", port))
    raw.setblocking(False)
    client = await StreamClient.open(port, sock=raw, max_queue=1)
    try:
        yield client, raw.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    finally:
        client.socket.transport.abort()


async def until_stuck(engine: ScriptedEngine) -> None:
    """The socket takes nothing, and thirty seconds of audio wait."""
    await engine.until(lambda: any(not granted for _, granted in engine.credits))


@pytest.mark.parametrize("receive_buffer", [4096, 1024 * 1024])
async def test_an_answer_waits_behind_one_message_and_the_buffers(run_gateway, receive_buffer):
    """What is read before the pong had left the server's hands before the ping came, but for one message."""
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, stalled_client(gateway.port, receive_buffer) as (client, taken):
        await client.speak(TEXT)
        await until_stuck(engine)
        await client.pong()
        before = len(client.contexts["_0"].audio)
        assert before < taken + SEND_BUFFER_BYTES + MESSAGE_BYTES + CLIENT_BYTES < 0.4 * 110 * 88_200
        assert (await client.whole("_0")).text == TEXT


@pytest.mark.parametrize("receive_buffer", [4096, 1024 * 1024])
async def test_a_cancel_drops_what_waits(run_gateway, receive_buffer):
    """Audio behind the cancel is what had been handed over; the fence says exactly how much that was."""
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, stalled_client(gateway.port, receive_buffer) as (client, taken):
        await client.speak(TEXT, context_id="a")
        await until_stuck(engine)
        await client.say("input.cancel", context_id="a")
        await client.speak("The next turn.", context_id="b")
        assert (await client.whole("b")).audio
        heard = client.contexts["a"]
        assert heard.end["type"] == "input.cancelled" and len(heard.audio) == 2 * heard.end["samples_sent"]
        assert len(heard.audio) < taken + SEND_BUFFER_BYTES + MESSAGE_BYTES + CLIENT_BYTES


async def test_a_cancel_is_acted_upon_though_nothing_is_read(run_gateway):
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, stalled_client(gateway.port, 4096) as (client, _):
        await client.speak(TEXT, context_id="a")
        await until_stuck(engine)
        assert engine.live
        for _ in range(200):  # more than the socket takes, were it not read
            await client.say("input.text", text="x" * 4000, context_id="a")
        await client.say("input.cancel", context_id="a")
        await engine.until(lambda: not engine.live)
        await client.until("input.cancelled", context_id="a")


async def test_who_reads_as_fast_as_it_plays_is_not_taken_for_dead(run_gateway):
    """The ping waits in the client's own buffers, behind three seconds of audio."""
    settings = Settings(limits=Limits(ping_interval_s=0.05, ping_timeout_s=0.2), tick_s=0.02)
    engine = ScriptedEngine(frames=lambda text: 65)
    async with run_gateway(engine, settings) as gateway:
        client, began = await gateway.client(), time.monotonic()
        await client.speak("Three seconds.")
        await client.whole("_0")
        client.socket.transport.pause_reading()
        while gateway.runner.server.connections:
            assert time.monotonic() - began < 10
            await asyncio.sleep(0.05)
        assert time.monotonic() - began > 3
        client.socket.transport.abort()


@linux
async def test_clients_that_stop_reading_cost_no_more_than_the_limit_and_nobody_else_time(tmp_path, monkeypatch):
    """Fifty, twice: each reads the greeting only, and has asked for ten minutes, made fifty times as fast as played."""
    clients, budget_s, waits = 50, 10.0, []
    # Beside the budget, what was on its way when synthesis paused: the message that passed the budget, two chunks of
    # floats from the engine, twice as large, and a message each in the session and in the transport; then the objects.
    cap = int(budget_s * 88_200) + 7 * MESSAGE_BYTES + 65_536
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "65536")  # audio that is freed goes back at once
    limits = (f"--limit=unsent_audio_s={budget_s}", "--limit=write_stall_s=1.5", "--limit=waiting_contexts=100")
    process = scripted_gateway(tmp_path / "log", f"--speed={50 * 21.5}", "--frames=860", *limits)  # 40 s a sentence
    with process as gateway:
        async with await StreamClient.open(gateway.port) as listener:
            await listener.speak("One. ")
            await listener.whole("_0")
            base, files = gateway.state()["rss"], gateway.files
            gateway.forget_peak()
            for _ in range(2):
                stalled = [await _stalled(gateway.port) for _ in range(clients)]
                while gateway.files > files:  # until the last of them is cut off
                    asked_at = time.monotonic()
                    await listener.pong()
                    waits.append(time.monotonic() - asked_at)
                    await asyncio.sleep(0.02)
                for client in stalled:
                    client.socket.transport.abort()
            await listener.speak("Two. ")
            assert (await listener.whole("_1")).audio
        grown = gateway.peak - base
    print(f"peak {grown / 1e6:.0f} of {clients * cap / 1e6:.0f} MB, longest wait for a pong {max(waits):.3f} s")
    assert clients * budget_s * 88_200 / 2 < grown < clients * cap
    assert max(waits) < 1.0


async def _stalled(port: int) -> StreamClient:
    """Asks for ten minutes, and reads no more than the greeting."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect(("127.0.0.1", port))
    raw.setblocking(False)
    client = await StreamClient.open(port, sock=raw, max_queue=1)
    await client.say("input.text", text=SENTENCE * 15)
    return client
