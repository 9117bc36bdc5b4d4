"""From samples at the wire's rate to the bytes of a response format: one encoder for each context.

In the encoded formats all binary messages of a context, joined, are one file.  What has to be known of positions:
samples count when they are given to the encoder, which may hold them back for a while.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

import numpy as np

from gateway.audio.coded_streams import CODED_STREAMS, CodedStream
from gateway.audio.samples import SAMPLE_FORMATS, to_pcm
from protocol.wav import wav_header


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


class WavEncoder(SampleEncoder):
    """`wav`: a header that leaves the length open, then samples as in `pcm`."""

    def __init__(self, rate: int) -> None:
        super().__init__("pcm")
        self._head = wav_header(rate)

    async def encode(self, samples: np.ndarray) -> bytes:
        head, self._head = self._head, b""
        return head + to_pcm(samples)


class StreamEncoder:
    """`opus`, `mp3`, `aac`, `flac`.  Encodes in a thread: a chunk takes up to some 30 ms, in which the loop serves
    others."""

    def __init__(self, response_format: str, rate: int) -> None:
        self._stream: CodedStream | None = None
        self._open = CODED_STREAMS[response_format]
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


def open_encoder(response_format: str, rate: int) -> Encoder:
    """For one context."""
    if response_format in SAMPLE_FORMATS:
        return SampleEncoder(response_format)
    return WavEncoder(rate) if response_format == "wav" else StreamEncoder(response_format, rate)
