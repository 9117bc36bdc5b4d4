"""One resident sequence as the host knows it, and the result of a step, which is read when it is wanted.

Shapes: Q codebooks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from inference.messages import Sampling


@dataclass(slots=True, eq=False)
class Sequence:
    """`length`: the position of the next step's input in its slot; `step`: steps launched so far.

    `frames`, uint16 [Q] each: those that were read.  What a step needs beside this is on the device (`SlotState`).
    """

    slot: int
    length: int
    sampling: Sampling
    segment_index: int
    step: int = 0
    frames: list[np.ndarray] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class StepResult:
    """What a launched step makes, on the device until it is read.

    `made` int64 [width, Q + 1]: the semantic code of each row, `end` where it found its end, and its frame.
    `arrive`, if there is one, waits until `made` is there.
    """

    sequences: tuple[Sequence, ...]
    made: Tensor
    end: int
    arrive: Callable[[], object] | None = None

    def read(self) -> tuple[list[np.ndarray], list[bool]]:
        """Waits for the step -> each sequence's frame uint16 [Q], and whether it found its end instead."""
        if self.arrive is not None:
            self.arrive()
        made = self.made.cpu().numpy()[: len(self.sequences)]
        return list(made[:, 1:].astype(np.uint16)), (made[:, 0] == self.end).tolist()
