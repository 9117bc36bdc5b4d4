"""What the next step of each resident sequence reads beside its keys and values, on the model's device.

A step leaves all that its successor needs here, so the successor can be launched before anyone has read its result.

Shapes: B rows of a step, N slots and one more that stands in for rows without a sequence, Q codebooks, W frames of the
repetition window, S semantic codes.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from inference.config import ArkttsConfig
from inference.messages import Sampling
from inference.sampling import SamplingRows

_PADDING = Sampling(temperature=1.0, top_k=1, top_p=1.0)


class SlotState:
    """One row a KV slot; row N is padding.

    `columns` int64 [N + 1, Q + 1]: the next step's input, at position `lengths` int64 [N + 1].  `windows` int64
    [N + 1, W]: the last semantic codes, -1 where there is none.  `begun` bool [N + 1, 1]: whether a frame was made.
    `said` bool [N + 1, S + 1]: the semantic codes of the frames made so far; the end token's entry stays False.
    `sampling` float32 [N + 1, 4]: see `SamplingRows.of`.  `keys` int64 [N + 1, 3]: seed, segment, and the
    length at step 0, of which noise that is made on the device is a function.
    """

    def __init__(self, config: ArkttsConfig, slots: int, device: torch.device):
        rows = slots + 1
        self.padding, self._begin = slots, config.semantic_begin_id
        self.columns = torch.zeros((rows, config.num_codebooks + 1), dtype=torch.int64, device=device)
        self.lengths = torch.zeros(rows, dtype=torch.int64, device=device)
        self.windows = torch.full((rows, config.ras_window_size), -1, dtype=torch.int64, device=device)
        self.begun = torch.zeros((rows, 1), dtype=torch.bool, device=device)
        self.said = torch.zeros((rows, config.codebook_size + 1), dtype=torch.bool, device=device)
        self.sampling = torch.tensor([_numbers(_PADDING)] * rows, dtype=torch.float32, device=device)
        self.keys = torch.zeros((rows, 3), dtype=torch.int64, device=device)

    def open(self, slot: int, column: np.ndarray, length: int, sampling: Sampling, segment_index: int) -> None:
        """A sequence begins: its first step's input is `column` [Q + 1] at position `length`."""
        self.columns[slot] = torch.from_numpy(np.ascontiguousarray(column)).to(self.columns.device)
        self.lengths[slot] = length
        self.windows[slot] = -1
        self.begun[slot] = False
        self.said[slot] = False
        self.sampling[slot] = torch.tensor(_numbers(sampling), dtype=torch.float32).to(self.sampling.device)
        key = np.array([sampling.seed, segment_index, length], dtype=np.uint64).view(np.int64)
        self.keys[slot] = torch.from_numpy(key).to(self.keys.device)

    def parameters(self, rows: Tensor, candidates: int) -> SamplingRows:
        """Sampling parameters of the slots `rows` [B]; see `SamplingRows.of`."""
        return SamplingRows.of(self.sampling[rows], candidates)

    def advance(self, rows: Tensor, codes: Tensor) -> None:
        """The slots `rows` [B] have made the frames `codes` int64 [B, Q].

        A slot whose sequence found its end instead has no meaning any more, but may be run on.
        """
        first = codes[:, :1]
        self.columns[rows] = torch.cat((first + self._begin, codes), dim=1)
        self.lengths[rows] += 1
        self.lengths[self.padding] = 0  # it is in most steps, and would come to the end of all positions
        # The published window starts after the first frame, which never enters it.
        windows = self.windows[rows]
        grown = torch.cat((windows[:, 1:], first), dim=1)
        self.windows[rows] = torch.where(self.begun[rows], grown, windows)
        self.begun[rows] = True
        self.said[rows, codes[:, 0]] = True


def _numbers(sampling: Sampling) -> tuple[float, float, float, float]:
    """As `SamplingRows.of` takes them."""
    return sampling.temperature, float(sampling.top_k), sampling.top_p, sampling.repetition_penalty
