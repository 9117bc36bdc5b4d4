"""However the network cuts the frames: masked ones pass unchanged, and nothing passes from the first other one on."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from raw_socket import BINARY, CONTINUATION, PING, TEXT, frame

from gateway.http.masking import MaskCheck

HANDSHAKE = (
    "GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: {version}\r\n\r\n"
)

FRAMES = st.lists(
    st.builds(
        lambda opcode, size, mask: frame(opcode, b"\x01" * size, mask=mask),
        st.sampled_from([TEXT, BINARY, CONTINUATION, PING]),
        st.sampled_from([0, 1, 125, 126, 127, 300, 65535, 65536]),
        st.binary(min_size=4, max_size=4),
    ),
    max_size=6,
)
CUTS = st.lists(st.integers(1, 20), min_size=1, max_size=8)


def _pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """Small pieces at the beginning, then the rest."""
    pieces = []
    for size in cuts:
        pieces.append(data[:size])
        data = data[size:]
    return [*pieces, data]


@given(FRAMES, CUTS)
def test_masked_frames_pass_unchanged(frames, cuts):
    check, data = MaskCheck(None), b"".join(frames)
    assert b"".join(map(check.passed, _pieces(data, cuts))) == data


@given(FRAMES, st.sampled_from([0, 5, 126, 65536]), FRAMES, CUTS)
def test_nothing_passes_from_a_frame_without_a_mask_on(before, size, after, cuts):
    check, whole = MaskCheck(None), b"".join(before)
    data = whole + frame(TEXT, b"x" * size, masked=False) + b"".join(after)
    passed = b"".join(map(check.passed, _pieces(data, cuts)))
    assert passed[: len(whole)] == whole and passed[len(whole) :] == frame(15)


async def test_after_a_handshake_that_fails_http_goes_on(gateway):
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(HANDSHAKE.format(version=5).encode())
    assert b" 400 " in (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    while b"HTTP/1.1 200 " not in (line := await reader.readline()):
        assert line
    writer.write(HANDSHAKE.format(version=13).encode())
    while b"HTTP/1.1 101 " not in (line := await reader.readline()):
        assert line
    writer.close()
