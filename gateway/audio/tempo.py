"""Speech that is faster or slower at the same pitch: FFmpeg's `atempo` (WSOLA), which PyAV brings along."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np

from protocol.config import NATIVE_RATE

_PIECE = 512  # samples: the filter gives back whole pieces only, so small ones leave sooner
_TAIL = 4096  # samples of silence behind the last one: the filter drops what does not fill its window of 2048
_LEAST_STEP, _MOST_STEP = 0.5, 2.0  # of one filter: it takes no less, and above it would leave out sound


class Tempo:
    """One stream of native samples.  `speed` 2: half as long.  Not for two threads at once."""

    def __init__(self, speed: float) -> None:
        import av  # late, as for the encoders

        self._new_frame = av.AudioFrame.from_ndarray
        self._nothing_yet = (av.error.BlockingIOError, av.error.EOFError)
        graph = av.filter.Graph()
        graph.threads = 1
        self._time_base = Fraction(1, NATIVE_RATE)
        self._source = graph.add_abuffer(
            sample_rate=NATIVE_RATE, format="flt", layout="mono", time_base=self._time_base
        )
        *filters, self._sink = [graph.add("atempo", f"{step:.9f}") for step in _steps(speed)] + [
            graph.add("abuffersink")
        ]
        behind = self._source
        for each in (*filters, self._sink):
            behind.link_to(each)
            behind = each
        graph.configure()
        self._graph = graph  # it owns the filters
        self._given = 0

    def change(self, samples: np.ndarray, last: bool) -> np.ndarray:
        """float32 [n] -> float32 [m], what can leave now; with the `last` ones all that is left, and some silence."""
        if last:
            samples = np.concatenate([samples, np.zeros(_TAIL, np.float32)])
        out = []
        for start in range(0, len(samples), _PIECE):
            self._push(samples[start : start + _PIECE])
            out += self._pull()
        if last:
            self._source.push(None)
            out += self._pull()
        return np.concatenate(out) if out else np.empty(0, np.float32)

    def _push(self, samples: np.ndarray) -> None:
        frame = self._new_frame(np.ascontiguousarray(samples[None]), format="flt", layout="mono")
        frame.sample_rate, frame.time_base, frame.pts = NATIVE_RATE, self._time_base, self._given
        self._given += len(samples)
        self._source.push(frame)

    def _pull(self) -> list[np.ndarray]:
        frames = []
        while True:
            try:
                frames.append(self._sink.pull().to_ndarray().reshape(-1))
            except self._nothing_yet:
                return frames


def _steps(speed: float) -> tuple[float, ...]:
    """What each of the filters does, one behind the other."""
    return (speed,) if _LEAST_STEP <= speed <= _MOST_STEP else (sqrt(speed), sqrt(speed))
