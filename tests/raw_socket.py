"""A WebSocket client made of bytes, for what no library would send (RFC 6455, section 5.2).  Blocking."""

from __future__ import annotations

import json
import selectors
import socket
import struct
import time

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
_ZERO_MASK = bytes(4)  # a valid mask under which the payload stays as it is
_REQUEST = (
    b"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
_PATIENCE_S = 15.0


def frame(
    opcode: int,
    payload: bytes = b"",
    *,
    fin: bool = True,
    rsv: int = 0,
    masked: bool = True,
    mask: bytes = _ZERO_MASK,
    length: int | None = None,
) -> bytes:
    """One frame.  `payload` is sent as it is, whatever the `mask`; `rsv`: the three reserved bits; `length`: what the
    header says instead of the truth."""
    length = len(payload) if length is None else length
    first, bit = fin << 7 | rsv << 4 | opcode, masked << 7
    if length < 126:
        header = struct.pack(">BB", first, bit | length)
    elif length < 1 << 16:
        header = struct.pack(">BBH", first, bit | 126, length)
    else:
        header = struct.pack(">BBQ", first, bit | 127, length)
    return header + (mask if masked else b"") + payload


def message(kind: str, **fields: object) -> bytes:
    """A client's message in one frame."""
    return frame(TEXT, json.dumps({"type": kind, **fields}).encode())


def fragmented(data: bytes, size: int = 1) -> bytes:
    """A text message in frames of `size` bytes."""
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    return b"".join(
        frame(CONTINUATION if number else TEXT, piece, fin=number == len(pieces) - 1)
        for number, piece in enumerate(pieces)
    )


class RawSocket:
    """`messages` holds what was read: (opcode, payload) of each frame of the server.

    `narrow`: the network takes next to nothing that is not read.
    """

    def __init__(self, port: int, handshake: bool = True, narrow: bool = False) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(_PATIENCE_S)
        if narrow:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", port))
        self.messages: list[tuple[int, bytes]] = []
        self._buffer = bytearray()
        if handshake:
            self.socket.sendall(_REQUEST)
            while b"\r\n\r\n" not in self._buffer:
                self._buffer += self.socket.recv(4096)
            head, _, rest = self._buffer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 101 "), head
            self._buffer = bytearray(rest)

    def __enter__(self) -> RawSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send_head(self, size: int) -> None:
        """The first `size` bytes of a handshake."""
        self.socket.sendall(_REQUEST[:size])

    def send(self, data: bytes) -> None:
        """All of it, as long as the server takes it; what comes meanwhile is read, so that neither side waits for ever.

        Returns early if the server has ended the connection.
        """
        left, until = memoryview(data), time.monotonic() + 60
        self.socket.setblocking(False)
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
            while left and time.monotonic() < until:
                events = selector.select(1)[0][1]
                try:
                    if events & selectors.EVENT_READ and not self._receive():
                        break
                    if events & selectors.EVENT_WRITE:
                        left = left[self.socket.send(left) :]
                except ConnectionError:
                    break
        self.socket.settimeout(_PATIENCE_S)

    def until(self, condition) -> tuple[int, bytes]:
        """Read on to a frame that fulfils `condition(opcode, payload)`."""
        seen = 0
        while True:
            for opcode, payload in self.messages[seen:]:
                seen += 1
                if condition(opcode, payload):
                    return opcode, payload
            if not self._receive():
                raise ConnectionError("the server has ended the connection")

    def barrier(self, label: str) -> bool:
        """Whether the server still answers."""
        self.send(message("session.ping", id=label))
        answer = json.dumps(label).encode()
        return bool(self.until(lambda opcode, data: opcode == TEXT and b"session.pong" in data and answer in data))

    def close_code(self) -> int | None:
        """Read to the end: the code of the server's close, which is answered; None if there was none."""
        code = None
        try:
            while code is None:
                for opcode, payload in self.messages:
                    if opcode == CLOSE:
                        code = struct.unpack(">H", payload[:2])[0]
                if code is None and not self._receive():
                    return None
            self.socket.sendall(frame(CLOSE, struct.pack(">H", code)))
            while self._receive():
                pass
        except ConnectionError:
            pass
        return code

    def codes(self) -> list[str]:
        """The `code` of each error that was read."""
        values = [json.loads(payload) for opcode, payload in self.messages if opcode == TEXT]
        return [value["code"] for value in values if value["type"] == "error"]

    def reset(self) -> None:
        """End the connection as a killed process on a bad network does: no FIN, an RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def _receive(self) -> bool:
        """Take what has come; False at the end of the connection."""
        data = self.socket.recv(1 << 18)
        self._buffer += data
        while (parsed := _parse(self._buffer)) is not None:
            opcode, payload, end = parsed
            self.messages.append((opcode, payload))
            del self._buffer[:end]
        return bool(data)


def _parse(buffer: bytearray) -> tuple[int, bytes, int] | None:
    """(opcode, payload, where the next frame begins) of a server's frame, which has no mask; None: it is not whole."""
    if len(buffer) < 2:
        return None
    begin, length = 2, buffer[1] & 0x7F
    if length == 126:
        begin, length = 4, int.from_bytes(buffer[2:4], "big")
    elif length == 127:
        begin, length = 10, int.from_bytes(buffer[2:10], "big")
    if len(buffer) < begin + length:
        return None
    return buffer[0] & 0x0F, bytes(buffer[begin : begin + length]), begin + length
