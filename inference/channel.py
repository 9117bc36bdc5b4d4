"""Messages between the gateway and a stage: pickled dataclasses with a length in front, over a socket pair.

Both ends are processes of one gateway, on a socket that nobody else can open; that is why pickle is safe here.
"""

from __future__ import annotations

import contextlib
import pickle
import select
import socket
import struct

_LENGTH = struct.Struct("<I")
_READ_BYTES = 1 << 18


class ChannelClosed(Exception):
    """The other end is gone."""


def frame(message: object) -> bytes:
    """The bytes of one message."""
    data = pickle.dumps(message, protocol=5)
    return _LENGTH.pack(len(data)) + data


class Unframer:
    """Turns received bytes into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[object]:
        """The messages that `data` completes."""
        self._buffer += data
        messages = []
        while len(self._buffer) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._buffer)[0]
            if len(self._buffer) < end:
                break
            messages.append(pickle.loads(memoryview(self._buffer)[_LENGTH.size : end]))
            del self._buffer[:end]
        return messages


class StageChannel:
    """The stage's end: blocking writes, reads that wait or do not."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._unframer = Unframer()

    def fileno(self) -> int:
        """For `select`."""
        return self._socket.fileno()

    def send(self, message: object) -> None:
        """Raises ChannelClosed if the gateway is gone."""
        try:
            self._socket.sendall(frame(message))
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(self) -> list[object]:
        """What has arrived, without waiting.  Raises ChannelClosed if the gateway is gone."""
        messages: list[object] = []
        with contextlib.suppress(BlockingIOError):
            while True:
                try:
                    data = self._socket.recv(_READ_BYTES, socket.MSG_DONTWAIT)
                except ConnectionError as error:
                    raise ChannelClosed(str(error)) from error
                if not data:
                    raise ChannelClosed("the gateway closed the channel")
                messages += self._unframer.feed(data)
        return messages

    def wait(self, timeout_s: float | None, *others: object) -> None:
        """Sleep until a message (or one of `others`, things with a fileno) is there, at most `timeout_s`."""
        select.select([self, *others], [], [], timeout_s)
