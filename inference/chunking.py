"""When the frames of a stream leave stage 0 for the codec, and how much of them: pure, with the time as an argument.

Times are seconds of one monotonic clock.  `Chunker` is one stream's; its policy decides, its listener clock remembers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PIECE_FRAMES = 8  # frames of one codec call, at most: for so long an urgent stream may have to wait for another one
FEWEST_EARLY_FRAMES = 2  # a chunk that leaves early has at least so many: the codec's cost of a call is paid per chunk
DEFAULT_MARGIN_S = 0.12  # what prefills of newcomers, wake-ups and the socket may cost; measured on two busy cores


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast things go now.

    `step_s`: seconds from one frame of this stream to its next.  `decode_s_per_frame` and `ahead_frames`: the codec's
    feedback, that is its seconds per frame and the frames that are decoded before ours.  `pause_s`: no step is run for
    so long from now on, as someone is prefilled.  `streams`: how many take turns.
    """

    step_s: float = 0.0
    decode_s_per_frame: float = 0.0
    ahead_frames: int = 0
    pause_s: float = 0.0
    streams: int = 1

    def decode_s(self, frames: int) -> float:
        """Seconds until `frames` that leave now are decoded, at most: the others, who come to be dry at the same time
        as steps go to the least slack, may all have as much to be decoded first, up to a piece each."""
        ahead = max(self.ahead_frames, (self.streams - 1) * min(frames, PIECE_FRAMES))
        return (ahead + frames) * self.decode_s_per_frame


class ListenerClock:
    """When the listener of a stream has heard all that was sent: `dry_at`, None while it has been sent nothing.

    The clock starts when the first chunk is out.  A listener who has run dry waits, so for it the clock starts anew
    with the next chunk.
    """

    def __init__(self, frame_s: float, dry_at: float | None = None) -> None:
        self._frame_s = frame_s
        self.dry_at = dry_at

    def sent(self, frames: int, out_at: float) -> None:
        """`frames` reach the listener at `out_at`."""
        start = out_at if self.dry_at is None else max(self.dry_at, out_at)
        self.dry_at = start + frames * self._frame_s


class Chunker:
    """Cuts the frames of one stream into chunks.

    `policy`: "fixed" gives exactly `initial`, then `chunk` frames each, then the rest.  "adaptive" gives `initial`,
    then up to `chunk`, but leaves early, with what is there, when the listener would otherwise run dry.  "whole" gives
    everything when the stream has ended.  `dry_at`: when the listener has heard what earlier streams brought, None if
    it hears nothing yet.
    """

    def __init__(
        self,
        policy: Literal["fixed", "adaptive", "whole"],
        initial: int,
        chunk: int,
        frame_s: float,
        dry_at: float | None = None,
        margin_s: float = DEFAULT_MARGIN_S,
    ) -> None:
        self._policy, self._initial, self._chunk, self._margin_s = policy, initial, chunk, margin_s
        self._clock = ListenerClock(frame_s, dry_at)
        self.sent_frames = 0

    @property
    def dry_at(self) -> float | None:
        """When the listener has heard all that has left; None while nothing has."""
        return self._clock.dry_at

    def due(self, pending: int, ended: bool, now: float, pace: Pace) -> int:
        """Frames, of the `pending` ones, that are to leave now; 0: none.  Ask again after `sent`: more may be due.

        `ended`: no more frames will come.  The caller marks the chunk after which nothing is pending as the last one,
        and sends an empty one if nothing is pending at the end.
        """
        if self._policy == "whole":
            return pending if ended else 0
        size = self._chunk if self.sent_frames else self._initial
        if pending >= size or ended:
            return min(pending, size)
        return pending if self._leaves_early(pending, now, pace) else 0

    def sent(self, frames: int, now: float, pace: Pace) -> None:
        """`frames` have left at `now`.  They are heard when they are decoded, or later: a listener is never believed to
        have more time than it has."""
        self.sent_frames += frames
        self._clock.sent(frames, now + frames * pace.decode_s_per_frame)

    def _leaves_early(self, pending: int, now: float, pace: Pace) -> bool:
        """Whether to wait for one more frame would be too late: it takes a step, and the next look is a step later.

        Two more steps are for jitter, which grows with them: a prefill in between, or a busy machine.
        """
        if self._policy != "adaptive" or not self.sent_frames or pending < FEWEST_EARLY_FRAMES:
            return False
        assert self._clock.dry_at is not None  # something was sent
        lead = pace.pause_s + pace.decode_s(pending) + 4 * pace.step_s + self._margin_s
        return self._clock.dry_at - now < lead
