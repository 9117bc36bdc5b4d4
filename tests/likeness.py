"""Whose voice is it?  A speaker embedder that works offline: the network and weights of Resemblyzer.

Only the weights are taken out of the package: some of what it depends on has no wheels, and is not needed for this.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import soxr
import torch
from client_environments import without_dependencies
from torch import Tensor, nn
from transformers.audio_utils import mel_filter_bank, spectrogram, window_function

RATE = 16000
_WINDOW, _HOP, _BANDS = 400, 160, 40  # samples; mel bands
_PART, _STEP = 160, 80  # columns of 10 ms: the network was trained on pieces of 1.6 s, which overlap by half
_LEVEL = 10 ** (-30 / 20)  # effective value of what it was trained on


class Embedder(nn.Module):
    """Three LSTM layers, and a line on the last one's state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(_BANDS, 256, 3, batch_first=True)
        self.linear = nn.Linear(256, 256)

    def forward(self, mel: Tensor) -> Tensor:
        """mel [B, T, 40] -> [B, 256], of length 1."""
        _, (hidden, _) = self.lstm(mel)
        return nn.functional.normalize(torch.relu(self.linear(hidden[-1])), dim=1)


@cache
def _embedder() -> Embedder:
    weights = without_dependencies("resemblyzer==0.1.4") / "resemblyzer" / "pretrained.pt"
    embedder = Embedder()
    embedder.load_state_dict(torch.load(weights, "cpu", weights_only=True)["model_state"], strict=False)
    return embedder.eval()


@cache
def _bank() -> np.ndarray:
    return mel_filter_bank(_WINDOW // 2 + 1, _BANDS, 0.0, RATE / 2, RATE, norm="slaney", mel_scale="slaney")


def embedding(samples: np.ndarray, rate: int) -> np.ndarray:
    """float32 [n], at least some 1.6 s of speech -> float32 [256], of length 1: two of one speaker are alike."""
    wave = _without_silence(soxr.resample(samples, rate, RATE))
    wave = wave * max(1.0, _LEVEL / max(1e-6, float(wave.std())))
    mel = spectrogram(
        np.pad(wave, (0, max(0, _PART * _HOP - len(wave)))), window_function(_WINDOW, "hann"), _WINDOW, _HOP,
        power=2.0, pad_mode="constant", mel_filters=_bank(),
    ).T.astype(np.float32)  # fmt: skip
    parts = [mel[start : start + _PART] for start in range(0, len(mel) - _PART + 1, _STEP)]
    with torch.inference_mode():
        mean = _embedder()(torch.from_numpy(np.stack(parts))).mean(0).numpy()
    return mean / np.linalg.norm(mean)


def likeness(one: np.ndarray, other: np.ndarray) -> float:
    """Of two embeddings, up to 1: some 0.6 for two speakers, 0.8 and more for one."""
    return float(one @ other)


def _without_silence(wave: np.ndarray) -> np.ndarray:
    """float [n] at RATE -> what is louder than a hundredth of the loudest tenth of a second."""
    size = RATE // 10
    windows = wave[: len(wave) // size * size].reshape(-1, size)
    loudness = windows.std(axis=1)
    return windows[loudness > 0.01 * loudness.max()].reshape(-1)
