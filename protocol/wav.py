"""The header of a WAV file of 16-bit samples in one channel."""

from __future__ import annotations

import struct

OPEN = 0xFFFFFFFF  # a size that is not known when the file begins, as programs write it that cannot go back

_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
_FORMAT_BYTES, _PCM, _CHANNELS, _SAMPLE_BYTES = 16, 1, 1, 2
_BEFORE_RIFF_SIZE = 8  # bytes that the first size does not count


def wav_header(rate: int, data_bytes: int = OPEN) -> bytes:
    """44 bytes; `data_bytes` follow, or as many as come until the end of the stream."""
    riff_bytes = OPEN if data_bytes == OPEN else _HEADER.size - _BEFORE_RIFF_SIZE + data_bytes
    return _HEADER.pack(
        b"RIFF", riff_bytes, b"WAVE",
        b"fmt ", _FORMAT_BYTES, _PCM, _CHANNELS, rate, rate * _SAMPLE_BYTES, _SAMPLE_BYTES, 8 * _SAMPLE_BYTES,
        b"data", data_bytes,
    )  # fmt: skip
