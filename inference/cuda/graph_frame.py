"""One frame as one CUDA graph.  In go the rows' slots, out come their frames; all else stays on the device.

Shapes: B rows of a step, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import torch
from torch import Tensor

from inference.cuda.graphs import Graph, fetch, put
from inference.dual_ar import DualAR
from inference.frame import Frame
from inference.kv import KVSlots
from inference.noise import FrameNoise
from inference.sampling import FEW
from inference.slots import SlotState

_HAS_TRITON = find_spec("triton") is not None


class GraphFrame:
    """Owns the graphs and what they read and write."""

    def __init__(
        self,
        model: DualAR,
        width: int,
        state: SlotState,
        kv: KVSlots,
        noise: FrameNoise,
        frame: Frame,
        ignore_eos: bool,
        injected: bool,
        kernels: bool | None,
        pool: tuple[int, int],
    ):
        """`frame`: the same of plain operations, for what the kernels do not take.  `injected`: noise comes from the
        host.  `kernels`: see `GraphRunner`.  Raises GraphError."""
        self._state, self._kv, self._frame = state, kv, frame
        device = kv.keys.device
        self._rows = torch.full((width,), state.padding, dtype=torch.int64, device=device)
        self._draws = torch.ones((width, noise.size), device=device)
        self._made = torch.zeros((width, model.config.num_codebooks + 1), dtype=torch.int64, device=device)
        self.wants_noise = injected or not _HAS_TRITON
        self._fill = None if self.wants_noise else self._noise_on_device()
        everything = model.config.codebook_size + 1
        if _takes(model, width) if kernels is None else kernels:
            graph = Graph(self._filled(self._of_kernels(model, width, noise, ignore_eos)), pool)
            self._graphs = {FEW: graph, everything: graph}
        else:
            self._graphs = {
                candidates: Graph(self._filled(lambda candidates=candidates: self._plain(candidates)), pool)
                for candidates in (FEW, everything)
            }

    def __call__(self, rows: list[int], noise: np.ndarray | None, candidates: int) -> tuple[Tensor, torch.cuda.Event]:
        """Launch a frame of the slots `rows`, B of them.  `noise` float32 [B, size] if it is wanted; `candidates`: see
        `SamplingRows.of` -> int64 [B, Q + 1] as `Frame` gives it, on the host once the event has happened."""
        put(torch.tensor(rows), self._rows)
        if noise is not None:
            put(torch.from_numpy(noise), self._draws)
        self._graphs[candidates].launch()
        return fetch(self._made)

    def _filled(self, work: Callable[[], None]) -> Callable[[], None]:
        """`work` with noise."""
        if self._fill is None:
            return work

        def both() -> None:
            self._fill()
            work()

        return both

    def _noise_on_device(self) -> Callable[[], None]:
        from inference.cuda.frame import fill_noise
        from inference.cuda.launches import Tiles

        return lambda: fill_noise(self._rows, self._state.keys, self._state.lengths, self._draws, Tiles())

    def _of_kernels(self, model: DualAR, width: int, noise: FrameNoise, ignore_eos: bool) -> Callable[[], None]:
        from inference.cuda.frame import KernelFrame
        from inference.cuda.launches import Tiles

        frame = KernelFrame(model, width, self._state, self._kv, noise, ignore_eos, Tiles())
        return lambda: frame(self._rows, self._draws, self._made)

    def _plain(self, candidates: int) -> None:
        attend = self._kv.attend_masked(self._rows, self._state.lengths[self._rows])
        self._made.copy_(self._frame(self._rows, self._draws, attend, candidates, True))


def _takes(model: DualAR, width: int) -> bool:
    """Whether our kernels can be used."""
    if not _HAS_TRITON:
        return False
    from inference.cuda.frame import takes

    return takes(model.config, width)
