"""Prefill as one CUDA graph for each of some sizes.  A prompt takes the smallest that holds it; the rest is padding.

Shapes: P columns of a size, Q codebooks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from inference.buckets import bucket_of, buckets
from inference.cuda.graphs import Graph, put
from inference.dual_ar import DualAR
from inference.kv import KVSlots
from inference.padded_prompt import write_prompt


@dataclass(frozen=True, slots=True, eq=False)
class _Captured:
    """`packed` int64 [1, Q + 1, P] and `place` int64 [3] (slot, start, count) are what the graph reads."""

    graph: Graph
    packed: Tensor
    place: Tensor


class GraphPrompt:
    """Owns the graphs."""

    def __init__(self, model: DualAR, kv: KVSlots, pool: tuple[int, int]):
        """Captures all sizes.  Raises GraphError."""
        self._books = model.config.num_codebooks
        self._buckets = buckets(kv.max_len)
        self._captured = {size: self._capture(model, kv, size, pool) for size in reversed(self._buckets)}

    def _capture(self, model: DualAR, kv: KVSlots, size: int, pool: tuple[int, int]) -> _Captured:
        device = kv.keys.device
        packed = torch.zeros((1, self._books + 1, size), dtype=torch.int64, device=device)
        place = torch.zeros(3, dtype=torch.int64, device=device)  # no column counts: the padding's slot is written
        return _Captured(Graph(lambda: write_prompt(model, kv, packed, place), pool), packed, place)

    def __call__(self, slot: int, packed: np.ndarray, start: int) -> None:
        """See `ARRunner.prefill`."""
        count = packed.shape[1]
        captured = self._captured[bucket_of(count, self._buckets)]
        padded = torch.zeros(captured.packed.shape, dtype=torch.int64)
        padded[0, :, :count] = torch.from_numpy(np.ascontiguousarray(packed))
        put(padded, captured.packed)
        put(torch.tensor([slot, start, count]), captured.place)
        captured.graph.launch()
