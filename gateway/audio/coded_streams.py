"""Streams of coded frames: what each of `opus`, `mp3`, `aac` and `flac` needs around the packets of its encoder."""

from __future__ import annotations

import numpy as np

from gateway.audio.frame_coder import Codec, FrameCoder
from gateway.audio.ogg import OggOpusPages

_OPUS = Codec("libopus", "flt", 64_000, {"application": "audio", "frame_duration": "20"})
# Without the bit reservoir a frame needs none of those before it, so that it may leave at once and be heard alone.
_MP3_OPTIONS = {"reservoir": "0"}
_FLAC = Codec("flac", "s16", None, {"compression_level": "2"})  # its frames are the shortest, about 27 ms
_BIT_RATES = {
    8000: 32_000,
    16000: 48_000,
    22050: 64_000,
    24000: 64_000,
    32000: 96_000,
    44100: 128_000,
    48000: 128_000,
}
_ADTS_RATES = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000)
_ADTS_BYTES = 7


class CodedStream:
    """One context's audio as frames that leave as soon as they are complete.  Not for two threads at once."""

    def __init__(self, codec: Codec, rate: int) -> None:
        self._coder = FrameCoder(codec, rate)

    def encode(self, samples: np.ndarray) -> bytes:
        """float32 [n] -> what is complete with them; nothing before the first frame is."""
        return self._wrap(self._coder.encode(samples))

    def pad(self) -> tuple[bytes, int]:
        """(bytes, samples of silence) until a decoder has all that was given; nothing if all is out."""
        before = self._coder.given
        return self._wrap(self._coder.pad()), self._coder.given - before

    def finish(self) -> bytes:
        """The rest."""
        return self._wrap(self._coder.finish())

    def _wrap(self, packets: list[bytes]) -> bytes:
        """As they stand in the stream."""
        return b"".join(packets)


class OpusStream(CodedStream):
    """Ogg Opus: pages end where a call ends, and the last one tells the length to the sample."""

    def __init__(self, rate: int) -> None:
        super().__init__(_OPUS, rate)
        self._pages = OggOpusPages(self._coder.head, self._coder.frame_samples)

    def finish(self) -> bytes:
        packets = self._coder.finish()
        return self._pages.write(packets, end=self._coder.delay + self._coder.given)

    def _wrap(self, packets: list[bytes]) -> bytes:
        return self._pages.write(packets) if packets else b""


class Mp3Stream(CodedStream):
    """MPEG audio layer III frames of a constant bit rate, and nothing else."""

    def __init__(self, rate: int) -> None:
        super().__init__(Codec("libmp3lame", "fltp", _BIT_RATES[rate], _MP3_OPTIONS), rate)


class AacStream(CodedStream):
    """AAC-LC in ADTS: each frame has a header of its own, so that one can begin to listen at any of them."""

    def __init__(self, rate: int) -> None:
        super().__init__(Codec("aac", "fltp", _BIT_RATES[rate]), rate)
        self._rate_index = _ADTS_RATES.index(rate)

    def _wrap(self, packets: list[bytes]) -> bytes:
        return b"".join(self._header(len(packet)) + packet for packet in packets)

    def _header(self, size: int) -> bytes:
        """ISO/IEC 14496-3, 1.A.2.2: MPEG-4, no checksum, profile LC (1), one channel, any buffer fullness."""
        bits = 0xFFF1 << 40 | 1 << 38 | self._rate_index << 34 | 1 << 30 | (size + _ADTS_BYTES) << 13 | 0x7FF << 2
        return bits.to_bytes(_ADTS_BYTES, "big")


class FlacStream(CodedStream):
    """FLAC of 16 bits: the marker, STREAMINFO of a length that is not known, frames (RFC 9639)."""

    def __init__(self, rate: int) -> None:
        super().__init__(_FLAC, rate)
        only_block = 0x80  # the last of the metadata, of type 0
        self._head = b"fLaC" + bytes([only_block]) + len(self._coder.head).to_bytes(3, "big") + self._coder.head

    def _wrap(self, packets: list[bytes]) -> bytes:
        head, self._head = (self._head, b"") if packets else (b"", self._head)
        return head + b"".join(packets)


CODED_STREAMS: dict[str, type[OpusStream | Mp3Stream | AacStream | FlacStream]] = {
    "opus": OpusStream,
    "mp3": Mp3Stream,
    "aac": AacStream,
    "flac": FlacStream,
}
