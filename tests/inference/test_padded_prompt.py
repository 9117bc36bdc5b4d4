"""A padded prompt leaves in its slot what the prompt itself does, and nothing in any other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from parity import golden, tiny_config, tiny_model

from inference.dual_ar import DualAR
from inference.kv import KVSlots
from inference.padded_prompt import write_prompt
from inference.runner import ARRunner

SLOTS, SLOT, MAX_LEN = 3, 1, 48


def kv_of(model: DualAR) -> KVSlots:
    """One slot more than sequences have; what is nobody's business is NaN, which would spread."""
    kv = KVSlots(model.config, SLOTS + 1, MAX_LEN, model.norm.weight)
    kv.keys.fill_(torch.nan)
    kv.values.fill_(7.0)
    return kv


@pytest.mark.parametrize("which", ["a", "b"])
@pytest.mark.parametrize(("start", "size"), [(0, 32), (8, 16), (8, MAX_LEN)])
def test_padding_changes_nothing(which, start, size):
    """The last case's padding would come to lie behind the end of the slot."""
    model, prompt = tiny_model(which), golden(f"ar_tiny_{which}")["prompt"][0][:, :20]
    runner = ARRunner(model, width=1, slots=1, max_len=MAX_LEN)
    runner.prefill(0, prompt, 0)
    kv = kv_of(model)
    kv.keys[:, SLOT], kv.values[:, SLOT] = 0, 0
    kv.keys[:, SLOT, :, :start] = runner.kv.keys[:, 0, :, :start]
    kv.values[:, SLOT, :, :start] = runner.kv.values[:, 0, :, :start]
    count = prompt.shape[1] - start
    packed = torch.zeros((1, len(prompt), size), dtype=torch.int64)
    packed[0, :, :count] = torch.from_numpy(np.ascontiguousarray(prompt[:, start:]))
    with torch.inference_mode():
        write_prompt(model, kv, packed, torch.tensor([SLOT, start, count]))
    torch.testing.assert_close(kv.keys[:, SLOT], runner.kv.keys[:, 0], atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(kv.values[:, SLOT], runner.kv.values[:, 0], atol=2e-5, rtol=1e-4)
    for other in (0, 2):
        assert kv.keys[:, other].isnan().all() and (kv.values[:, other] == 7.0).all()


def test_it_asks_for_no_value():
    """Tensors without values: whatever asks for one raises."""
    with torch.device("meta"), torch.inference_mode():
        model = DualAR(tiny_config("a")).to(torch.bfloat16).freeze()
        kv = KVSlots(model.config, SLOTS + 1, MAX_LEN, model.norm.weight)
        packed = torch.zeros((1, model.config.num_codebooks + 1, 32), dtype=torch.int64)
        write_prompt(model, kv, packed, torch.zeros(3, dtype=torch.int64))
