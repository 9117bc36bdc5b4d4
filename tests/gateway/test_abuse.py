"""One client breaks every rule while three others listen: it gets the documented answer, they notice nothing.

The gateway, the listeners and the abuser are three processes, so that each one's memory and lag are its own.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest
from bystanders import bystanders
from raw_socket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, RawSocket, fragmented, frame, message
from scripted_gateway import GatewayProcess, scripted_gateway

UNDERRUN_S = 0.005
MOST_LAG_S = 0.1
MOST_MEMORY = 50 * 1024 * 1024
LONG = "It goes on, and on, and on, and on. " * 20
SPEAK = message("input.text", text=LONG) + message("input.done")
MIB = 1 << 20


@pytest.fixture(scope="module")
def gateway(tmp_path_factory) -> Iterator[GatewayProcess]:
    with scripted_gateway(tmp_path_factory.mktemp("abuse") / "log", "--realtime") as process:
        yield process
        assert "Traceback" not in process.log and " ERROR " not in process.log


@pytest.fixture(scope="module")
def report(gateway) -> Iterator[Callable[[], dict]]:
    with bystanders(gateway.port) as ask:
        yield ask


@pytest.fixture
def unharmed(gateway, report) -> Iterator[None]:
    """Afterwards nothing is left, memory has not grown, and the others have noticed nothing."""
    before = gateway.state()
    gateway.forget_peak()
    report()
    yield
    noticed, loop = report(), gateway.state()
    assert noticed["dry_s"] <= UNDERRUN_S, noticed
    assert loop["lag_s"] <= MOST_LAG_S, loop
    assert noticed["lag_s"] <= MOST_LAG_S + noticed["noise_s"] + loop["noise_s"], (noticed, loop)
    assert gateway.peak - before["rss"] < MOST_MEMORY
    gateway.settled(before)
    assert "Traceback" not in gateway.log


CLOSED = {
    "unknown opcode 3": (frame(3), 1002),
    "unknown opcode 11": (frame(11), 1002),
    "reserved bit 1": (frame(TEXT, b"{}", rsv=4), 1002),
    "reserved bit 2": (frame(TEXT, b"{}", rsv=2), 1002),
    "reserved bit 3": (frame(TEXT, b"{}", rsv=1), 1002),
    "a frame without a mask": (frame(TEXT, b'{"type": "session.ping"}', masked=False), 1002),
    "a ping without a mask between fragments": (frame(TEXT, b"{", fin=False) + frame(PING, masked=False), 1002),
    "a ping of 126 bytes": (frame(PING, bytes(126)), 1002),
    "a close of 130 bytes": (frame(CLOSE, b"\x03\xe8" + b"x" * 128), 1002),
    "a ping in fragments": (frame(PING, b"a", fin=False), 1002),
    "a continuation of nothing": (frame(CONTINUATION, b"a"), 1002),
    "a message within another": (frame(TEXT, b"a", fin=False) + frame(TEXT, b"b"), 1002),
    "a close with one byte": (frame(CLOSE, b"\x03"), 1002),
    "a close with a code that must not be sent": (frame(CLOSE, b"\x03\xed"), 1002),
    "a binary message": (frame(BINARY, b'{"type": "session.ping"}'), 1003),
    "an empty binary message": (frame(BINARY), 1003),
    "not UTF-8": (frame(TEXT, b"\xff\xfe"), 1007),
    "half a character": (frame(TEXT, b'{"type": "session.ping", "id": "\xeb\x8b"}'), 1007),
    "half a character in fragments": (fragmented(b'"\xeb\x8b"'), 1007),
    "a length of 2^62": (frame(TEXT, b"x" * 1000, length=1 << 62), 1009),
    "a length of 2^64 - 1": (frame(TEXT, b"x" * 1000, length=(1 << 64) - 1), 1009),
    "16 MiB": (frame(TEXT, b"x" * 16 * MIB), 1009),
    "16 MiB in fragments": (fragmented(b"x" * 16 * MIB, 1 << 16), 1009),
    "a key of 1 MiB": (frame(TEXT, b'{"' + b"k" * MIB + b'": 1}'), 1009),
    "a config that is too big": (message("session.config", ref_audio="x" * 9 * MIB), 1009),
    "megabytes of halves of characters": (
        frame(TEXT, b'{"type": "session.config", "a": "' + b"\\ud800" * MIB + b'"}'),
        1009,
    ),
    "millions of values in a config": (frame(TEXT, b'{"type": "session.config", "a": [' + b"[]," * (2 * MIB)), 1009),
    "millions of keys": (frame(TEXT, b'{"type": "session.config", "a": 1' + b',"a": 1' * MIB), 1009),
}


@pytest.mark.parametrize(("data", "code"), CLOSED.values(), ids=CLOSED)
def test_what_breaks_the_framing_is_closed(gateway, unharmed, data, code):
    """Also in the middle of speech."""
    with RawSocket(gateway.port) as abuser:
        abuser.send(SPEAK)
        abuser.until(lambda opcode, _: opcode == BINARY)
        abuser.send(data)
        assert abuser.close_code() == code


REFUSED = {
    "100,000 nested brackets": (frame(TEXT, b"[" * 100_000), ["bad_json"]),
    "100,000 nested brackets in an object": (frame(TEXT, b'{"type":' + b"[" * 100_000), ["bad_json"]),
    "nested and a lone surrogate": (frame(TEXT, b'["\\ud83d"' + b"[" * 100_000), ["bad_json"]),
    "a key of 100 kB": (frame(TEXT, b'{"type": "input.text", "' + b"k" * 100_000 + b'": 1}'), ["unknown_field"]),
    "NaN": (frame(TEXT, b'{"type": "session.config", "top_p": NaN}'), ["bad_json"]),
    "duplicate keys": (frame(TEXT, b'{"type": "session.ping", "type": 5}'), ["bad_message"]),
    "a number of 100,000 digits": (frame(TEXT, b'{"type": ' + b"9" * 100_000 + b"}"), ["bad_json"]),
    "text beyond the limit": (message("input.text", text="word " * 20_000), ["text_too_long"]),
}


@pytest.mark.parametrize(("data", "codes"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_understood_is_refused(gateway, unharmed, data, codes):
    with RawSocket(gateway.port) as abuser:
        abuser.send(data)
        assert abuser.barrier("still there") and abuser.codes() == codes


PINGED = frame(TEXT, b'{"type": ', fin=False) + frame(PING) + frame(CONTINUATION, b'"session.ping"}')
FLOODS = {
    "empty messages": (frame(TEXT), 200_000, "bad_json"),
    "tiny texts": (message("input.text", text="a "), 50_000, "text_too_long"),
    "flushes": (message("input.flush") + message("input.text", text="a "), 20_000, "rate_limited"),
    "pings": (frame(PING, b"x" * 125), 100_000, None),
    "pongs that nobody asked for": (frame(PONG, b"x" * 125), 100_000, None),
    "messages in fragments of one byte": (fragmented(b'{"type": "session.ping"}'), 5_000, None),
    "fragments with pings between": (PINGED, 20_000, None),
    "empty fragments": (
        frame(TEXT, fin=False) + frame(CONTINUATION, fin=False) * 100 + frame(CONTINUATION),
        2000,
        "bad_json",
    ),
}


@pytest.mark.parametrize("share", [0.1, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("data", "count", "code"), FLOODS.values(), ids=FLOODS)
def test_floods_are_answered(gateway, unharmed, data, count, code, share):
    with RawSocket(gateway.port) as abuser:
        abuser.send(data * int(share * count))
        assert abuser.barrier("still there") and {*abuser.codes()} <= {code}


def test_a_character_may_be_cut_by_frames(gateway, unharmed):
    with RawSocket(gateway.port) as client:
        client.send(fragmented('{"type": "session.ping", "id": "니"}'.encode()))
        client.until(lambda opcode, data: "니".encode() in data)


@pytest.mark.parametrize(
    "data", [frame(PING, b"x" * 125), message("session.ping", id="x" * 64), SPEAK], ids=["pings", "messages", "speech"]
)
def test_a_flood_of_a_client_that_never_reads_is_bounded(gateway, unharmed, data):
    """The server keeps little to answer, then stops reading, and at last cuts the line."""
    with RawSocket(gateway.port) as abuser:
        abuser.socket.settimeout(1)
        until, many = time.monotonic() + 3, data * (1 + 100_000 // len(data))
        with contextlib.suppress(OSError):
            while time.monotonic() < until:
                abuser.socket.sendall(many)


def test_a_client_that_is_gone_without_a_word_is_noticed(gateway, unharmed):
    """It neither reads nor answers, as if its cable were cut: its ping stays unanswered, its socket takes no more."""
    with RawSocket(gateway.port) as silent, RawSocket(gateway.port, narrow=True) as listener:
        listener.send(SPEAK)
        time.sleep(8)  # longer than a ping and its answer may take, and a write
        for client in (silent, listener):
            with contextlib.suppress(ConnectionError):
                while client.socket.recv(1 << 16):
                    pass


LEAVING = {
    "in the middle of a header": (b"\x81", False),
    "in the middle of a frame": (frame(TEXT, b"x" * 10, length=1000), False),
    "in the middle of a fragmented message": (frame(TEXT, b"x", fin=False), False),
    "while it is spoken to": (SPEAK, True),
    "after its close": (SPEAK + frame(CLOSE, b"\x03\xe8"), True),
    "with session.close": (SPEAK + message("session.close"), True),
    "after a frame that is wrong": (SPEAK + frame(3), True),
}


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize(("data", "speaking"), LEAVING.values(), ids=LEAVING)
def test_leaving_at_any_moment(gateway, unharmed, data, speaking, how):
    for number in range(20):
        client = RawSocket(gateway.port)
        client.send(data)
        if speaking and number % 2:
            client.until(lambda opcode, _: opcode in (BINARY, CLOSE))
        client.reset() if how == "reset" else client.socket.close()


@pytest.mark.parametrize(
    "ending", [message("session.close"), frame(BINARY, b"x"), frame(3)], ids=["1000", "1003", "1002"]
)
def test_a_client_that_never_answers_a_close_is_cut_off(gateway, unharmed, ending):
    """It goes on sending text instead."""
    with RawSocket(gateway.port) as client:
        client.send(SPEAK + ending)
        begin = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() < begin + 10:
                client.socket.sendall(message("input.text", text="x"))
                time.sleep(0.05)
        assert time.monotonic() - begin < 5


def test_what_is_sent_after_a_close_is_not_worth_a_line_each(gateway, unharmed):
    lines = len(gateway.log.splitlines())
    for _ in range(200):
        with RawSocket(gateway.port) as client:
            client.send(
                message("input.text", text="Hello.") + frame(CLOSE, b"\x03\xe8") + message("input.text", text="a ") * 20
            )
    gateway.settled({**gateway.state(), "streams": 3})
    assert len(gateway.log.splitlines()) - lines <= 200 * 4
