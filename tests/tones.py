"""An engine that speaks in pure tones, so that rate, length and owner of audio can be told from the audio alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scripted_engine import FRAME_SAMPLES, INFO, ScriptedEngine, frames_for

from gateway.engine.stream import EngineStream
from inference.messages import AudioChunk, Submit

LOW, HIGH = 440.0, 880.0  # Hz
LOUD = 0.5


def pitch(text: str) -> float:
    """Which tone speaks a text: HIGH if the word "high" is in it, else LOW."""
    return HIGH if "high" in text.lower() else LOW


def seconds(frames: int) -> float:
    """How long so many frames are."""
    return frames * FRAME_SAMPLES / INFO.sample_rate


class ToneEngine(ScriptedEngine):
    """Each segment is one tone, by `pitch`, for two frames a character unless `frames` says otherwise."""

    def __init__(self, speed: float | None = None, frames: Callable[[str], int] = frames_for, **options) -> None:
        super().__init__(speed, frames=frames, **options)
        self._pitches: dict[int, float] = {}

    def submit(self, request: Submit) -> EngineStream:
        self._pitches[request.stream_id] = pitch(request.text)
        return super().submit(request)

    def carried(self, message: AudioChunk) -> AudioChunk:
        """With the samples of the tone."""
        times = (message.first_frame * FRAME_SAMPLES + np.arange(len(message.samples))) / INFO.sample_rate
        tone = LOUD * np.sin(2 * np.pi * self._pitches[message.stream_id] * times)
        return replace(message, samples=tone.astype(np.float32))


def pitches(samples: np.ndarray, rate: int, window_s: float = 0.1) -> list[float]:
    """Which of LOW and HIGH is heard in each whole window of int16 samples, in order; 0 for another or none.

    Windows in which two tones meet count as another.
    """
    size = int(window_s * rate)
    times = np.arange(size) / rate
    probes = np.exp(-2j * np.pi * np.outer([LOW, HIGH], times)) * 2 / size
    heard = []
    for start in range(0, len(samples) - size + 1, size):
        window = samples[start : start + size] / 32768
        low, high = np.abs(probes @ window)
        heard.append(LOW if low > 0.8 * LOUD else HIGH if high > 0.8 * LOUD else 0.0)
    return heard
