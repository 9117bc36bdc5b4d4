"""Decoders that are not the gateway's library: libsndfile with libopus and libmpg123."""

from __future__ import annotations

import io

import numpy as np
import soundfile

MP3_DELAY = 1105  # samples that a decoder puts before the first, at every rate


def decode(data: bytes) -> tuple[np.ndarray, int]:
    """A whole file -> (float64 [n], sample rate)."""
    samples, rate = soundfile.read(io.BytesIO(data))
    assert samples.ndim == 1
    return samples, rate


def heard_of(response_format: str, data: bytes, rate: int, samples: int) -> np.ndarray:
    """The `samples` that a context of that format says it has, as a listener hears them."""
    decoded, decoded_rate = decode(data)
    assert decoded_rate == rate
    if response_format == "opus":
        assert len(decoded) == samples
        return decoded
    assert samples + MP3_DELAY <= len(decoded) < samples + MP3_DELAY + 2 * 1152
    return decoded[MP3_DELAY : MP3_DELAY + samples]


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
