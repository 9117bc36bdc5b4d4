"""A client's frames are masked, or the connection ends (RFC 6455, section 5.1): the HTTP library takes both kinds."""

from __future__ import annotations

import asyncio

_MASK_BYTES = 4
_WRONG_FRAME = b"\x8f\x80" + bytes(_MASK_BYTES)  # of an unknown kind: the library closes with 1002 upon it


class MaskCheck(asyncio.Protocol):
    """Stands between the transport and the library's protocol, from the handshake on; looks at the headers only."""

    def __init__(self, inner: asyncio.Protocol) -> None:
        self._inner = inner
        self._held = b""  # a header of which more is to come
        self._left = 0  # bytes of the current frame that are to come
        self._is_broken = False

    def data_received(self, data: bytes) -> None:
        if passed := self.passed(data):
            self._inner.data_received(passed)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._inner.connection_lost(error)

    def passed(self, data: bytes) -> bytes:
        """What the library may see of `data`: all up to a frame without a mask, in whose place a wrong one stands."""
        if self._is_broken:
            return b""
        data, begin = self._held + data, self._left
        while begin + 2 <= len(data):
            if data[begin + 1] < 0x80:
                self._is_broken = True
                return data[:begin] + _WRONG_FRAME
            size = _frame_size(data, begin)
            if size is None:
                break
            begin += size
        self._left = max(0, begin - len(data))
        self._held = data[begin:]
        return data[:begin]


def _frame_size(data: bytes, begin: int) -> int | None:
    """Bytes of the masked frame whose header begins there, None if not enough of it is known."""
    length = data[begin + 1] & 0x7F
    if length < 126:
        return 2 + _MASK_BYTES + length
    width = 2 if length == 126 else 8
    if begin + 2 + width > len(data):
        return None
    return 2 + width + _MASK_BYTES + int.from_bytes(data[begin + 2 : begin + 2 + width], "big")
