"""What the stages take, as measured of late, and what follows: how urgent a chunk is, how many listeners fit.  Pure."""

from __future__ import annotations

from collections.abc import Callable

from inference.average import MovingAverage, WorkTime
from inference.chunking import FEWEST_EARLY_FRAMES, Pace
from inference.connector import Feedback
from inference.scheduler import Guard

HEADROOM = 0.85  # share of what the stages can do that listeners get: the rest fills buffers again after a prefill or a
# hiccup
_TYPICAL_FRAMES = 60  # of a segment, until segments have ended


class Costs:
    """Moving averages of stage 0's work; those of stage 1 come with its `feedback`."""

    def __init__(self, width: int, frame_rate: float, initial_frames: int, feedback: Callable[[], Feedback]) -> None:
        """`width`: streams in one step, at most; `frame_rate`: frames a second that each listener needs;
        `initial_frames`: of a first chunk."""
        self._width, self._frame_rate, self._initial, self._feedback = width, frame_rate, initial_frames, feedback
        self._step, self._prefill, self._column = WorkTime(), MovingAverage(), MovingAverage()
        self._frames = MovingAverage(_TYPICAL_FRAMES, 1)

    @property
    def step_s(self) -> float:
        """Seconds of a step."""
        return self._step.now

    def stepped(self, seconds: float, rows: int) -> None:
        """A step of so many streams and all that goes with it has taken so long."""
        self._step.add(seconds, 1, busy=rows == self._width)

    def prefilled(self, columns: int, seconds: float) -> None:
        """The prefill of so many columns has taken so long."""
        self._prefill.add(seconds)
        self._column.add(seconds, columns)

    def ended(self, frames: int) -> None:
        """A segment has come to so many frames."""
        self._frames.add(frames)

    def prefill_s(self, columns: int) -> float:
        """Seconds that a prefill of so many columns will take."""
        return columns * self._column.value

    def guard(self, columns: int | None = None) -> Guard:
        """Who has less comes before a prefill of so many columns (None: an average one): after that, the step that
        runs, those for the frames of a chunk, and its decode behind another one are still to come."""
        prefill_s = self._prefill.value if columns is None else self.prefill_s(columns)
        decode_s = self._initial * self._feedback().seconds_per_frame
        first_s = prefill_s + (FEWEST_EARLY_FRAMES + 1) * self._step.now + 2 * decode_s
        return Guard(first_s, self._step.now / self._width + decode_s)

    def pace(self, resident: int, pause_s: float = 0.0) -> Pace:
        """With so many resident streams: one gets its turn every so many steps as there are more of them than rows."""
        turns, feedback = max(1.0, resident / self._width), self._feedback()
        return Pace(
            self._step.now * turns, feedback.seconds_per_frame, feedback.ahead_frames, pause_s, max(1, resident)
        )

    def capacity(self) -> float:
        """Listeners whose rates fit: each needs `frame_rate` frames a second from both stages.

        A frame takes stage 0 its part of a full step, and its part of its segment's prefill.
        """
        frame_s = self._step.busy / self._width + self._prefill.value / max(1.0, self._frames.value)
        slowest = max(frame_s, self._feedback().busy_seconds_per_frame)
        return HEADROOM / (self._frame_rate * slowest) if slowest else 1.0

    def places(self) -> float:
        """Listeners who may speak now: no more are taken on while the codec has no time for a newcomer's first chunk,
        as it has fallen behind."""
        return self.capacity() if self._feedback().spare_s > self.guard().first_s else 0.0
