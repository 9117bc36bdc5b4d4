"""What can be measured of a voice: how high it is, and how loud."""

from __future__ import annotations

import numpy as np

_SIZE = 2048  # samples of a window
_LOWEST_HZ, _HIGHEST_HZ = 70, 400
_HEARD = 0.01  # effective value, of 1


def pitch(samples: np.ndarray, rate: int) -> float:
    """Hz: the median of the voiced windows, by autocorrelation.  float [n] in −1…1."""
    found = []
    shortest, longest = rate // _HIGHEST_HZ, rate // _LOWEST_HZ
    for start in range(0, len(samples) - _SIZE, _SIZE // 2):
        window = samples[start : start + _SIZE] * np.hanning(_SIZE)
        alike = np.fft.irfft(np.abs(np.fft.rfft(window, 4 * _SIZE)) ** 2)
        lag = shortest + int(np.argmax(alike[shortest:longest]))
        if window.std() > _HEARD and alike[lag] > 0.4 * alike[0]:
            found.append(rate / lag)
    return float(np.median(found))


def level(samples: np.ndarray) -> float:
    """dB below full scale of what is heard, pauses left out.  float [n] in −1…1."""
    windows = samples[: len(samples) // _SIZE * _SIZE].reshape(-1, _SIZE)
    power = (windows.astype(np.float64) ** 2).mean(axis=1)
    return float(10 * np.log10(power[power > _HEARD**2].mean()))
