"""Connect, speak, be killed, again and again: memory stays flat, and every file, task and stream is given back."""

from __future__ import annotations

import random

import pytest
from raw_socket import BINARY, CLOSE, RawSocket, frame, message
from scripted_gateway import GatewayProcess, scripted_gateway

HI = message("input.text", text="hi")
WARM_UP = 500
MOST_GROWTH = 256  # bytes a cycle
SLACK = 1 << 20  # bytes, of the allocator


def _cycle(port: int, rng: random.Random) -> None:
    """Half of them do not survive their handshake."""
    if rng.random() < 0.5:
        client = RawSocket(port, handshake=False)
        client.send_head(rng.choice([0, 1, 40, 150, 1000]))
    else:
        client = RawSocket(port)
        client.send(HI)
        how = rng.choice(["at once", "spoken to", "flushed", "done", "close"])
        if how != "at once":
            client.send(message("input.done" if how == "done" else "input.flush"))
        if how in ("spoken to", "done"):
            client.until(lambda opcode, _: opcode == BINARY)
        if how == "close":
            client.send(frame(CLOSE, b"\x03\xe8"))
    client.reset() if rng.random() < 0.5 else client.socket.close()


def _cycles(gateway: GatewayProcess, rng: random.Random, count: int) -> None:
    for _ in range(count):
        _cycle(gateway.port, rng)


@pytest.mark.parametrize(
    ("warm_up", "cycles"), [(WARM_UP, 1000), pytest.param(1000, 9000, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_nothing_is_left_of_clients_that_were_killed(tmp_path, warm_up, cycles):
    rng = random.Random(0)
    with scripted_gateway(tmp_path / "log") as gateway:
        before = gateway.state(collect=True)
        _cycles(gateway, rng, warm_up)
        gateway.settled(before)
        warm = gateway.state(collect=True)
        _cycles(gateway, rng, cycles)
        gateway.settled(before)
        after = gateway.state(collect=True)
        assert after["rss"] - warm["rss"] < SLACK + cycles * MOST_GROWTH, (warm, after)
        assert "Traceback" not in gateway.log and " ERROR " not in gateway.log
