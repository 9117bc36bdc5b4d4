"""What stage 0 tells stage 1 through the connector, and its form in bytes.

A stream is opened, then brings chunks until one is the `last`, or is aborted.  Form of a record, little-endian: kind
u8, last u8, num_codebooks u16, first_frame u32, stream_id u64; then StreamOpened's dry_at f64 (NaN for None), or
CodesChunk's codes as uint16, codebook by codebook.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np

_HEAD = struct.Struct("<BBHIQ")
_TIME = struct.Struct("<d")


@dataclass(frozen=True, slots=True)
class ProducerStarted:
    """Stage 0 begins (again): the first record of its life.  Streams opened before it will bring nothing more."""


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """Codes of this stream will follow.  `dry_at`: when its listener has heard what earlier streams brought, in seconds
    of CLOCK_MONOTONIC; None if it hears nothing yet."""

    stream_id: int
    dry_at: float | None


@dataclass(frozen=True, slots=True, eq=False)
class CodesChunk:
    """Frames to decode: codes uint16 [num_codebooks, n], the stream's frames first_frame … first_frame + n - 1.

    The `last` chunk of a stream ends it and may be empty (n = 0).
    """

    stream_id: int
    first_frame: int
    codes: np.ndarray
    last: bool


@dataclass(frozen=True, slots=True)
class StreamPaused:
    """No chunk is due for now: the stream is held back on purpose (no credit, or others are more urgent)."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class StreamResumed:
    """Chunks are due again: the wait for the next one begins anew."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class StreamAborted:
    """The stream has ended without a last chunk (cancelled or failed): forget what it holds."""

    stream_id: int


Record = ProducerStarted | StreamOpened | CodesChunk | StreamPaused | StreamResumed | StreamAborted

_KINDS: tuple[type[Record], ...] = (
    ProducerStarted, StreamOpened, CodesChunk, StreamPaused, StreamResumed, StreamAborted
)  # fmt: skip
_KIND_OF = {record_type: kind for kind, record_type in enumerate(_KINDS)}


def encode(record: Record) -> bytes:
    """The record's bytes.  Raises ValueError for codes that are not uint16 [num_codebooks, n]."""
    kind = _KIND_OF[type(record)]
    match record:
        case CodesChunk(stream_id, first_frame, codes, last):
            if codes.ndim != 2 or codes.dtype != np.uint16 or not len(codes):
                raise ValueError(f"codes must be uint16 [num_codebooks, n], got {codes.dtype} {list(codes.shape)}")
            return _HEAD.pack(kind, last, len(codes), first_frame, stream_id) + codes.astype("<u2").tobytes()
        case StreamOpened(stream_id, dry_at):
            return _HEAD.pack(kind, False, 0, 0, stream_id) + _TIME.pack(math.nan if dry_at is None else dry_at)
        case ProducerStarted():
            return _HEAD.pack(kind, False, 0, 0, 0)
    return _HEAD.pack(kind, False, 0, 0, record.stream_id)


def decode(data: bytes) -> Record:
    """The record that `encode` has written."""
    kind, last, num_codebooks, first_frame, stream_id = _HEAD.unpack_from(data)
    record_type = _KINDS[kind]
    if record_type is CodesChunk:
        codes = np.frombuffer(data, "<u2", offset=_HEAD.size).astype(np.uint16).reshape(num_codebooks, -1)
        return CodesChunk(stream_id, first_frame, codes, bool(last))
    if record_type is StreamOpened:
        (dry_at,) = _TIME.unpack_from(data, _HEAD.size)
        return StreamOpened(stream_id, None if math.isnan(dry_at) else dry_at)
    return ProducerStarted() if record_type is ProducerStarted else record_type(stream_id)
