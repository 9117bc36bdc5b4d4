"""From the model's float samples to those of the wire: speed, rate, and the formats whose samples are numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import floor

import numpy as np
import soxr

from gateway.audio.tempo import Tempo
from protocol.config import NATIVE_RATE


def wire_length(samples: int, rate: int, speed: float = 1.0) -> int:
    """How many samples at `rate` a segment of `samples` native ones gives, spoken at `speed`."""
    return floor(samples * rate / (NATIVE_RATE * speed) + 0.5)


class SegmentConverter:
    """The audio of one segment, piece by piece.  The lengths of its pieces add up to `wire_length`."""

    def __init__(self, rate: int, speed: float = 1.0) -> None:
        self._rate, self._speed = rate, speed
        self._tempo = Tempo(speed) if speed != 1 else None
        self._stream = soxr.ResampleStream(NATIVE_RATE, rate, 1, dtype="float32") if rate != NATIVE_RATE else None
        self._taken = self._given = 0
        self._early = np.empty(0, np.float32)  # came out of the filters before its time

    async def convert(self, samples: np.ndarray, last: bool) -> np.ndarray:
        """float32 [n] at the native rate -> float32 [m] at the wire's rate; m may be 0.

        There are never more than `wire_length` of all that was taken.  The filters' tails are drained with the last
        piece, and the sum is brought to the exact length.
        """
        if self._tempo is None and self._stream is None:
            return samples
        self._taken += len(samples)
        if self._tempo is not None:  # in a thread: up to 15 ms for a second of audio, in which the loop serves others
            samples = await asyncio.to_thread(self._tempo.change, samples, last)
        out = samples if self._stream is None else self._stream.resample_chunk(samples, last=last)
        out = np.concatenate([self._early, out])
        room = wire_length(self._taken, self._rate, self._speed) - self._given
        out, self._early = out[:room], out[room:]
        if last:
            out = np.pad(out, (0, room - len(out)))
        self._given += len(out)
        return out


def to_pcm(samples: np.ndarray) -> bytes:
    """Signed 16-bit little-endian, clipped."""
    return to_int16(samples).astype("<i2").tobytes()


def to_f32(samples: np.ndarray) -> bytes:
    """32-bit float little-endian, as the model made it."""
    return samples.astype("<f4").tobytes()


def to_mulaw(samples: np.ndarray) -> bytes:
    """ITU-T G.711 mu-law of the 14 upper bits."""
    return _MULAW[to_int16(samples).view(np.uint16)].tobytes()


def to_alaw(samples: np.ndarray) -> bytes:
    """ITU-T G.711 A-law of the 13 upper bits."""
    return _ALAW[to_int16(samples).view(np.uint16)].tobytes()


SAMPLE_FORMATS: dict[str, Callable[[np.ndarray], bytes]] = {
    "pcm": to_pcm,
    "f32": to_f32,
    "mulaw": to_mulaw,
    "alaw": to_alaw,
}


def to_int16(samples: np.ndarray) -> np.ndarray:
    """int16 [n], clipped and rounded."""
    return np.rint(np.clip(samples, -1.0, 1.0) * 32767.0).astype(np.int16)


def _mulaw_table() -> np.ndarray:
    """uint8 [65536], indexed by the bits of an int16: sign, exponent of the biased magnitude, four bits below it."""
    linear = np.arange(65536, dtype=np.uint16).view(np.int16).astype(np.int32) >> 2
    magnitude = np.minimum(np.abs(linear), 8158) + 33
    exponent = np.floor(np.log2(magnitude)).astype(np.int32) - 5
    mantissa = (magnitude >> (exponent + 1)) & 15
    code = exponent << 4 | mantissa
    return np.where(linear < 0, 0x7F - code, 0xFF - code).astype(np.uint8)


def _alaw_table() -> np.ndarray:
    """uint8 [65536], indexed by the bits of an int16; every second bit of a code is inverted, as G.711 has it."""
    linear = np.arange(65536, dtype=np.uint16).view(np.int16).astype(np.int32) >> 3
    magnitude = np.where(linear < 0, -linear - 1, linear)
    exponent = np.maximum(np.floor(np.log2(np.maximum(magnitude, 1))).astype(np.int32) - 4, 0)
    mantissa = (magnitude >> np.maximum(exponent, 1)) & 15
    code = exponent << 4 | mantissa
    return (np.where(linear < 0, code, code | 0x80) ^ 0x55).astype(np.uint8)


_MULAW, _ALAW = _mulaw_table(), _alaw_table()
