"""Decoders that are not the gateway's library: libsndfile with libopus, libmpg123 and libFLAC; of AAC there is none."""

from __future__ import annotations

import io

import av
import numpy as np
import soundfile

DELAYS = {"mp3": 1105, "aac": 1024}  # samples that a decoder puts before the first, at every rate
LONGEST_FRAME = {"mp3": 1152, "aac": 1024}
MP3_DELAY = DELAYS["mp3"]


def decode(data: bytes) -> tuple[np.ndarray, int]:
    """A whole file -> (float64 [n], sample rate)."""
    if data[:2] == b"\xff\xf1":
        return _decode_adts(data)
    with _Streamed(io.BytesIO(data)) as file:
        assert file.channels == 1
        blocks = [np.empty(0)]
        while len(block := file.read(1 << 16)):
            blocks.append(block)
        return np.concatenate(blocks), file.samplerate


class _Streamed(soundfile.SoundFile):
    """Read from its beginning to its end: a FLAC stream does not tell its length, so that one can seek in it."""

    def seekable(self) -> bool:
        return False


def _decode_adts(data: bytes) -> tuple[np.ndarray, int]:
    with av.open(io.BytesIO(data), format="aac") as file:
        frames = list(file.decode(audio=0))
    assert {frame.layout.name for frame in frames} == {"mono"}
    return np.concatenate([frame.to_ndarray()[0] for frame in frames]).astype(np.float64), frames[0].sample_rate


def heard_of(response_format: str, data: bytes, rate: int, samples: int) -> np.ndarray:
    """The `samples` that a context of that format says it has, as a listener hears them."""
    decoded, decoded_rate = decode(data)
    assert decoded_rate == rate
    if response_format not in DELAYS:
        assert len(decoded) == samples
        return decoded
    delay = DELAYS[response_format]
    assert samples + delay <= len(decoded) < samples + delay + 2 * LONGEST_FRAME[response_format]
    return decoded[delay : delay + samples]


def tone(first: int, count: int, rate: int = 44100, hertz: float = 440.0) -> np.ndarray:
    """A part of an endless tone, float32 [count]."""
    return (0.4 * np.sin(2 * np.pi * hertz * np.arange(first, first + count) / rate)).astype(np.float32)


def deviation(samples: np.ndarray, rate: int, hertz: float = 440.0) -> np.ndarray:
    """What is left of `samples` without the tone of that pitch that fits them best."""
    phase = 2 * np.pi * hertz * np.arange(len(samples)) / rate
    waves = np.stack([np.sin(phase), np.cos(phase)], axis=1)
    factors, *_ = np.linalg.lstsq(waves, samples, rcond=None)
    assert 0.35 < np.hypot(*factors) < 0.45
    return samples - waves @ factors


def decibels(signal: np.ndarray, noise: np.ndarray) -> float:
    """Signal to noise."""
    return 10 * float(np.log10(np.mean(np.square(signal)) / np.mean(np.square(noise))))
