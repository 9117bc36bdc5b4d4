"""Prefill of a padded prompt: a function of tensors whose shapes never change, so that a CUDA graph can hold it.

Shapes: P columns, of which some count, Q codebooks.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inference.dual_ar import DualAR
from inference.kv import KVSlots


def write_prompt(model: DualAR, kv: KVSlots, packed: Tensor, place: Tensor) -> None:
    """Keys and values of the first `count` columns of packed int64 [1, Q + 1, P] go to positions start, start + 1, … of
    a slot; place int64 [3] is slot, start and count.  The last slot of `kv` takes the padding's."""
    slot, start, count = place.unbind()
    size = packed.shape[2]
    positions = (start + torch.arange(size, device=packed.device)).clamp_max(kv.max_len - 1)
    model.slow(model.embed(packed), positions[None], kv.attend_padded(slot, start, count, size))
