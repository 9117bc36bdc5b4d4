"""A ring of byte records in memory that two processes share: one writes, one reads, neither ever waits for the other.

Layout: a header of HEADER bytes, then the ring.  The write and the read position count bytes for ever (u64); each is
stored by one side only, in a cache line of its own.  A record begins at a multiple of 8 with u32 length and u32
checksum, then its bytes, which may run over the ring's end to its start.

Why a reader sees whole records only:
- The position is stored after the bytes.  A writer killed between the two has written nothing that counts.
- A position is one aligned 8-byte store: CPython's memoryview of format "Q" copies the integer with a memcpy of
  constant size, which compilers turn into one move (the `struct` module's "<Q" may go byte by byte).  So no torn
  position is seen.
- Order: the interpreter calls separate C functions for the bytes and for the position, so the compiler cannot swap
  them. x86 keeps stores in order.  ARM may show the position before the bytes; then the checksum does not match, and
  the reader takes the record for not yet written and looks again later.  The checksum covers the position, so that
  bytes of an earlier lap never pass for the new record.
- Space is given back after the checksum has been compared; a store is not carried out before a branch that it depends
  on, on ARM either, so the writer cannot overwrite bytes that are still being read.
"""

from __future__ import annotations

import struct
import zlib

HEADER = 256  # bytes, four cache lines: unused, write position, read position, eight words that the reader publishes

_WRITE, _READ, _READER_WORDS = 8, 16, 24  # indices of 8-byte words in the header
_HEAD = struct.Struct("=II")
_ROUNDS_UNTIL_BROKEN = 200  # failed looks at one record: memory order delays it by nanoseconds, a look takes more


class RingError(RuntimeError):
    """The ring's content makes no sense: not our memory, or two writers."""


class Ring:
    """One end (or both) of the ring in `memory`, a writable buffer whose length is HEADER + a multiple of 8."""

    def __init__(self, memory: memoryview) -> None:
        self.capacity = len(memory) - HEADER
        if self.capacity < 64 or self.capacity % 8:
            raise ValueError(f"the ring must have a multiple of 8 bytes, at least 64, got {self.capacity}")
        self._header = memory[:HEADER].cast("Q")
        self._floats = memory[:HEADER].cast("d")
        self._bytes = memory[HEADER:]
        self._failed_looks = 0

    def write(self, data: bytes) -> bool:
        """Append a record; False, and nothing is written, if it does not fit now.  ValueError if it never will."""
        size = _room(len(data))
        if size > self.capacity:
            raise ValueError(f"a record of {len(data)} bytes does not fit into a ring of {self.capacity}")
        position = self._header[_WRITE]
        if position + size - self._header[_READ] > self.capacity:
            return False
        self._copy_in(position, _HEAD.pack(len(data), _checksum(position, data)))
        self._copy_in(position + _HEAD.size, data)
        self._header[_WRITE] = position + size
        return True

    def read(self) -> bytes | None:
        """The oldest record, taken out; None if there is none (yet).  RingError where the content makes no sense."""
        position = self._header[_READ]
        unread = self._header[_WRITE] - position
        if not unread:
            return None
        length, checksum = _HEAD.unpack(self._copy_out(position, _HEAD.size))
        data = self._copy_out(position + _HEAD.size, length) if _room(length) <= unread else b""
        if len(data) != length or _checksum(position, data) != checksum:
            return self._look_again(position)
        self._failed_looks = 0
        self._header[_READ] = position + _room(length)
        return data

    def discard(self) -> None:
        """The reader drops all that is unread.  Only its own position moves: the writer may go on meanwhile."""
        self._header[_READ] = self._header[_WRITE]
        self._failed_looks = 0

    def publish(self, index: int, value: float) -> None:
        """The reader shows the writer a number, in word `index` (0 to 7)."""
        self._floats[_READER_WORDS + index] = value

    def published(self, index: int) -> float:
        """What the reader has published last in word `index`; 0.0 at first."""
        return self._floats[_READER_WORDS + index]

    def close(self) -> None:
        """Let go of the memory, so that it can be unmapped."""
        for view in (self._header, self._floats, self._bytes):
            view.release()

    def _look_again(self, position: int) -> None:
        self._failed_looks += 1
        if self._failed_looks > _ROUNDS_UNTIL_BROKEN:
            raise RingError(f"the record at byte {position} of the ring never became whole")

    def _copy_in(self, position: int, data: bytes) -> None:
        start = position % self.capacity
        first = min(len(data), self.capacity - start)
        self._bytes[start : start + first] = data[:first]
        self._bytes[: len(data) - first] = data[first:]

    def _copy_out(self, position: int, length: int) -> bytes:
        start = position % self.capacity
        first = min(length, self.capacity - start)
        return bytes(self._bytes[start : start + first]) + bytes(self._bytes[: length - first])


def _room(length: int) -> int:
    """Bytes that a record of `length` bytes takes in the ring."""
    return _HEAD.size + (length + 7) // 8 * 8


def _checksum(position: int, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(struct.pack("=QQ", position, len(data))))
