"""From samples at the wire's rate to the bytes of a response format: one encoder for each context.

In `opus` and `mp3` all binary messages of a context, joined, are one file.  What has to be known of positions: samples
count when they are given to the encoder, which may hold them back for a while.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

import numpy as np

from gateway.audio.frame_coder import Codec, FrameCoder
from gateway.audio.ogg import OggOpusPages
from gateway.audio.samples import SAMPLE_FORMATS

_OPUS = Codec("libopus", "flt", 64_000, {"application": "audio", "frame_duration": "20"})
# Without the bit reservoir a frame needs none of those before it, so that it may leave at once and be heard alone.
_MP3_OPTIONS = {"reservoir": "0"}
_MP3_BIT_RATES = {
    8000: 32_000,
    16000: 48_000,
    22050: 64_000,
    24000: 64_000,
    32000: 96_000,
    44100: 128_000,
    48000: 128_000,
}


class Encoder(Protocol):
    """Takes the audio of one context, all its segments."""

    async def encode(self, samples: np.ndarray) -> bytes:
        """float32 [n] at the wire's rate -> what can leave now, maybe nothing."""

    async def pad(self) -> tuple[bytes, int]:
        """Bring out all that was given, with silence where that needs some -> (bytes, samples of silence)."""

    async def finish(self) -> bytes:
        """What is left at the end of the context."""


class SampleEncoder:
    """The formats in which each sample is a number by itself."""

    def __init__(self, response_format: str) -> None:
        self._encode = SAMPLE_FORMATS[response_format]

    async def encode(self, samples: np.ndarray) -> bytes:
        return self._encode(samples)

    async def pad(self) -> tuple[bytes, int]:
        return b"", 0

    async def finish(self) -> bytes:
        return b""


class StreamEncoder:
    """`opus` and `mp3`.  Encodes in a thread: a chunk takes up to some 30 ms, in which the loop serves others."""

    def __init__(self, response_format: str, rate: int) -> None:
        self._stream: OpusStream | Mp3Stream | None = None
        self._open = {"opus": OpusStream, "mp3": Mp3Stream}[response_format]
        self._rate = rate

    async def encode(self, samples: np.ndarray) -> bytes:
        return await asyncio.to_thread(self._encode, samples)

    async def pad(self) -> tuple[bytes, int]:
        return (b"", 0) if self._stream is None else await asyncio.to_thread(self._stream.pad)

    async def finish(self) -> bytes:
        return b"" if self._stream is None else await asyncio.to_thread(self._stream.finish)

    def _encode(self, samples: np.ndarray) -> bytes:
        if self._stream is None:  # here, in the thread: the first one of a process has to load the library
            self._stream = self._open(self._rate)
        return self._stream.encode(samples)


class OpusStream:
    """Ogg Opus: pages end where a call ends, and the last one tells the length to the sample."""

    def __init__(self, rate: int) -> None:
        self._coder = FrameCoder(_OPUS, rate)
        self._pages = OggOpusPages(self._coder.head, self._coder.frame_samples)

    def encode(self, samples: np.ndarray) -> bytes:
        """Whole pages, none before the first packet is complete."""
        packets = self._coder.encode(samples)
        return self._pages.write(packets) if packets else b""

    def pad(self) -> tuple[bytes, int]:
        """(pages, samples of silence); nothing if all is out."""
        before = self._coder.given
        packets = self._coder.pad()
        return (self._pages.write(packets) if packets else b""), self._coder.given - before

    def finish(self) -> bytes:
        """The last pages."""
        packets = self._coder.finish()
        return self._pages.write(packets, end=self._coder.delay + self._coder.given)


class Mp3Stream:
    """MPEG audio layer III frames of a constant bit rate, and nothing else."""

    def __init__(self, rate: int) -> None:
        self._coder = FrameCoder(Codec("libmp3lame", "fltp", _MP3_BIT_RATES[rate], _MP3_OPTIONS), rate)

    def encode(self, samples: np.ndarray) -> bytes:
        """Whole frames."""
        return b"".join(self._coder.encode(samples))

    def pad(self) -> tuple[bytes, int]:
        """(frames, samples of silence); nothing if all is out."""
        before = self._coder.given
        return b"".join(self._coder.pad()), self._coder.given - before

    def finish(self) -> bytes:
        """The last frames."""
        return b"".join(self._coder.finish())


def open_encoder(response_format: str, rate: int) -> Encoder:
    """For one context."""
    if response_format in SAMPLE_FORMATS:
        return SampleEncoder(response_format)
    return StreamEncoder(response_format, rate)
