"""Log-mel frames: what the codes describe.

Rates are the codec's: 44.1 kHz, one frame of 2,048 samples has four columns of 512.  Each column is centred in its own
512 samples, so that a frame's columns describe that frame.
"""

from __future__ import annotations

import functools

import numpy as np

RATE, FRAME, HOP, WINDOW, BANDS = 44_100, 2_048, 512, 2_048, 80
COLUMNS = FRAME // HOP
LOW_HZ, HIGH_HZ = 40.0, 13_000.0
FLOOR = 1e-4
"""Smallest band value before the logarithm: far below the teacher's noise, so that silence is one constant."""


@functools.cache
def mel_bank(window: int = WINDOW, bands: int = BANDS, low: float = LOW_HZ, high: float = HIGH_HZ) -> np.ndarray:
    """Triangular filters on the mel scale (2595 log10(1 + f/700)), float32 [bands, window / 2 + 1]."""
    low_mel, high_mel = (2595 * np.log10(1 + hz / 700) for hz in (low, high))
    edges = 700 * (10 ** (np.linspace(low_mel, high_mel, bands + 2) / 2595) - 1)
    bins = np.linspace(0, RATE / 2, window // 2 + 1)
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    return np.minimum(rising, falling).clip(min=0).astype(np.float32)


@functools.cache
def _hann() -> np.ndarray:
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)


def whole_frames(wave: np.ndarray) -> np.ndarray:
    """wave float32 [N], padded with zeros to a multiple of FRAME."""
    return np.pad(wave, (0, -len(wave) % FRAME))


def log_mel_frames(wave: np.ndarray) -> np.ndarray:
    """wave float32 [T * FRAME] -> float32 [T, COLUMNS * BANDS], column by column."""
    padded = np.pad(wave, (WINDOW - HOP) // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP] * _hann()
    magnitude = np.abs(np.fft.rfft(windows, axis=1))
    return np.log(np.maximum(magnitude @ mel_bank().T, FLOOR)).reshape(-1, COLUMNS * BANDS)
