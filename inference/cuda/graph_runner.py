"""The runner whose frames and prefills are CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from inference.cuda.graph_frame import GraphFrame
from inference.cuda.graph_prompt import GraphPrompt
from inference.cuda.graphs import new_pool
from inference.dual_ar import DualAR
from inference.runner import ARRunner
from inference.sequence import Sequence, StepResult


class GraphRunner(ARRunner):
    """What `ARRunner` does, launched as one graph a step and one a prefill.

    Where a row has no sequence, it has the slot behind all others, so that each step is the same work.
    """

    spare_slots = 1

    def __init__(
        self,
        model: DualAR,
        width: int,
        slots: int,
        *,
        max_len: int | None = None,
        ignore_eos: bool = False,
        draw: Callable[[Sequence], np.ndarray] | None = None,
        kernels: bool | None = None,
    ):
        """As for `ARRunner`.  `kernels`: whether frames are made of our kernels; by default, where they can be.

        Raises GraphError.
        """
        super().__init__(model, width, slots, max_len=max_len, ignore_eos=ignore_eos, draw=draw)
        pool = new_pool()
        self._graph_prompt = GraphPrompt(model, self.kv, pool)
        self._graph_frame = GraphFrame(
            model, width, self.state, self.kv, self.noise, self.frame, ignore_eos, draw is not None, kernels, pool
        )

    @torch.inference_mode()
    def prefill(self, slot: int, packed: np.ndarray, start: int) -> None:
        """See `ARRunner.prefill`."""
        if packed.shape[1]:
            self._graph_prompt(slot, packed, start)

    @torch.inference_mode()
    def launch(self, sequences: list[Sequence]) -> StepResult:
        """See `ARRunner.launch`; the result is on its way to the host when this returns."""
        slots = [sequence.slot for sequence in sequences]
        rows = slots + [self.state.padding] * (self.width - len(slots))
        noise = self._host_noise(sequences) if self._graph_frame.wants_noise else None
        made, event = self._graph_frame(rows, noise, self._candidates(sequences))
        return self._launched(sequences, made, event.synchronize)

    def _host_noise(self, sequences: list[Sequence]) -> np.ndarray:
        for row, sequence in enumerate(sequences):
            self._noise[row] = self._draw(sequence)
        return self._noise
