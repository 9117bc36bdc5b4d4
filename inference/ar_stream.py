"""One segment on its way from text to codes, as stage 0 keeps it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inference.chunking import Chunker
from inference.ends import EndGuard
from inference.messages import Submit
from inference.prompt import Prompt
from inference.sequence import Sequence


@dataclass(slots=True, eq=False)
class Stream:
    """`arrived`: when it was submitted; `ran_at`: when it had its last step; `told_at`: when stage 1 was last told of
    it.  `slot` and `sequence`: None before its prefill; `guard`: None if nothing but its limit is to end it."""

    request: Submit
    chunker: Chunker
    arrived: float
    frame_s: float
    prompt: Prompt
    guard: EndGuard | None
    credit: bool = True
    opened: bool = False  # stage 1 knows of it
    paused: bool = False
    ran_at: float = 0.0
    told_at: float = 0.0
    slot: int | None = None
    sequence: Sequence | None = None

    @property
    def listener(self) -> int:
        """Whose it is."""
        return self.request.listener

    @property
    def pending(self) -> int:
        """Frames that wait for their chunk."""
        return len(self.sequence.frames) - self.chunker.sent_frames if self.sequence else 0

    def slack(self, now: float) -> float | None:
        """See `scheduler.Schedulable`."""
        dry_at = self.chunker.dry_at
        return None if dry_at is None else dry_at - now + self.pending * self.frame_s

    def codes(self, first: int, end: int) -> np.ndarray:
        """Frames first … end - 1 as uint16 [Q, end - first]."""
        frames = self.sequence.frames[first:end]
        return np.stack(frames, axis=1) if frames else np.zeros((len(self.prompt.packed) - 1, 0), dtype=np.uint16)
