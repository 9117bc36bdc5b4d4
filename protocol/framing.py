"""The 24-byte header that `framing: header` puts before the samples of each binary message."""

from __future__ import annotations

import struct
from dataclasses import dataclass

MAGIC = b"A8"
VERSION = 1
FIRST = 0x01  # flag: first binary message of its context

_LAYOUT = struct.Struct("<2sBBIIIQ")
HEADER_BYTES = _LAYOUT.size  # 24


@dataclass(frozen=True, slots=True)
class AudioHeader:
    """`sequence` counts the context's binary messages from 0; `start`: index of the first sample in the context."""

    context_number: int
    sequence: int
    samples: int
    start: int

    def pack(self) -> bytes:
        """24 bytes, little-endian."""
        flags = FIRST if self.sequence == 0 else 0
        return _LAYOUT.pack(MAGIC, VERSION, flags, self.context_number, self.sequence, self.samples, self.start)

    @classmethod
    def unpack(cls, message: bytes) -> AudioHeader:
        """Read the header of a binary message.  Raises ValueError for anything that is not one of version 1."""
        if len(message) < HEADER_BYTES:
            raise ValueError(f"a header has {HEADER_BYTES} bytes, the message {len(message)}")
        magic, version, flags, number, sequence, samples, start = _LAYOUT.unpack_from(message)
        if (magic, version) != (MAGIC, VERSION):
            raise ValueError(f"expected magic {MAGIC!r} version {VERSION}, got {magic!r} version {version}")
        if flags != (FIRST if sequence == 0 else 0):
            raise ValueError(f"flags {flags:#04x} do not fit sequence {sequence}")
        return cls(number, sequence, samples, start)
