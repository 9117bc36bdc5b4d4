"""Opus packets in an Ogg stream (RFC 3533, RFC 7845), one or more whole pages at a time.

PyAV has an Ogg writer, but none that can be asked for the pages of what it holds: it keeps back the last page, and
cuts pages by time.  A chunk of speech has to leave at once, and whole.
"""

from __future__ import annotations

import secrets
import struct
import zlib
from collections.abc import Iterable

_CAPTURE = b"OggS"
_PAGE = struct.Struct("<4sBBqIII")  # then the number of segments; version, flags, granule, serial, sequence, checksum
_CHECKSUM_AT = 22
_FIRST, _LAST = 0x02, 0x04  # flags
_MOST_SEGMENTS, _SEGMENT_BYTES = 255, 255
_VENDOR = b"audio8-gateway"

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


class OggOpusPages:
    """`head`: the OpusHead packet; `packet_samples`: samples at 48 kHz that each packet decodes to."""

    def __init__(self, head: bytes, packet_samples: int) -> None:
        self._packet_samples = packet_samples
        self._serial = secrets.randbits(32)  # so that streams may be chained
        self._sequence = self._packets = 0
        tags = b"OpusTags" + struct.pack("<I", len(_VENDOR)) + _VENDOR + struct.pack("<I", 0)
        self._pages = self._page([head], 0, _FIRST) + self._page([tags], 0)

    def write(self, packets: Iterable[bytes], end: int | None = None) -> bytes:
        """All pages of these packets, before the first of them the headers.

        `end`: these are the last packets, and so many samples of all are played, those that a decoder skips at the
        start included.
        """
        pages, self._pages = self._pages, b""
        waiting: list[bytes] = []
        for packet in packets:
            if sum(map(_segments, waiting)) + _segments(packet) > _MOST_SEGMENTS:
                pages += self._page(waiting, self._granule)
                waiting = []
            waiting.append(packet)
            self._packets += 1
        if end is not None:
            return pages + self._page(waiting, end, _LAST)
        return pages + self._page(waiting, self._granule) if waiting else pages

    @property
    def _granule(self) -> int:
        """The position behind the last packet."""
        return self._packets * self._packet_samples

    def _page(self, packets: list[bytes], granule: int, flags: int = 0) -> bytes:
        lacing = b"".join(
            b"\xff" * (len(packet) // _SEGMENT_BYTES) + bytes([len(packet) % _SEGMENT_BYTES]) for packet in packets
        )
        page = bytearray(_PAGE.pack(_CAPTURE, 0, flags, granule, self._serial, self._sequence, 0))
        page += bytes([len(lacing)]) + lacing + b"".join(packets)
        struct.pack_into("<I", page, _CHECKSUM_AT, checksum(bytes(page)))
        self._sequence += 1
        return bytes(page)


def checksum(page: bytes) -> int:
    """CRC-32 of a page whose checksum field is zero: generator 0x04c11db7, highest bit first, no inversions.

    zlib's has the same generator, lowest bit first, and inverts before and after.
    """
    mirrored = zlib.crc32(page.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{mirrored:032b}"[::-1], 2)


def _segments(packet: bytes) -> int:
    return len(packet) // _SEGMENT_BYTES + 1
