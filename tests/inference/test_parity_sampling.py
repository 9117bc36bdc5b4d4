"""Filter and repetition-aware resampling against golden values."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from parity import golden, tiny_config
from transformers import RepetitionPenaltyLogitsProcessor

from inference.sampling import SamplingRows, penalise, rank, sample_semantic, scores


def parameters(rows: int, temperature: float, top_k: float, top_p: float, candidates: int) -> SamplingRows:
    """The same for all rows, without a penalty."""
    return SamplingRows.of(torch.tensor([[temperature, top_k, top_p, 1.0]] * rows), candidates)


def test_filter_keeps_exactly_the_published_entries():
    values = golden("sampling")
    logits = torch.from_numpy(values["filter_logits"])
    for setting, kept, probabilities in zip(
        values["filter_settings"], values["filter_kept"], values["filter_probs"], strict=True
    ):
        top_k, top_p, temperature = int(setting[0]), float(setting[1]), float(setting[2])
        rows = parameters(len(logits), temperature, top_k, top_p, logits.shape[1])
        ranked = rank(logits, rows)
        full = torch.full_like(logits, -torch.inf).scatter(1, ranked.ids, scores(ranked, rows))
        if top_p < 1:
            np.testing.assert_array_equal(torch.isfinite(full)[:5], kept[:5])
            np.testing.assert_allclose(full.softmax(dim=-1)[:5], probabilities[:5], atol=1e-6)
        # The last row is all ties: which entries stay depends on the order of equals, how many does not.
        assert int(torch.isfinite(full[5]).sum()) == int(kept[5].sum())


def test_repetition_aware_resampling_follows_the_script():
    values, config = golden("sampling"), tiny_config("a")
    ids = [*range(config.semantic_begin_id, config.semantic_end_id + 1), config.eos_token_id]
    top_k, top_p, temperature = values["ras_params"].tolist()
    rows = parameters(1, temperature, top_k, top_p, len(ids))
    ras = rows.with_ras(1.0, 0.9)
    for step, chosen in enumerate(values["ras_chosen"]):
        noise = [torch.from_numpy(values[f"ras_u_{draw}"][step, ids])[None] for draw in ("normal", "high")]
        tokens = values["ras_window"][step]
        window = np.where(tokens >= config.semantic_begin_id, tokens - config.semantic_begin_id, -1)
        logits = torch.from_numpy(values["ras_logits"][step, ids])[None]
        code = sample_semantic(logits, rows, ras, *noise, torch.from_numpy(window)[None])
        assert ids[int(code)] == chosen


@pytest.mark.parametrize("penalty", [0.5, 1.0, 1.1, 1.3, 2.0])
def test_the_repetition_penalty_is_that_of_transformers(penalty):
    generator = torch.Generator().manual_seed(5)
    logits = 4 * torch.randn((6, 257), generator=generator)
    said = torch.randint(0, 256, (6, 40), generator=generator)
    mask = torch.zeros_like(logits, dtype=torch.bool).scatter(1, said, True)
    ours = penalise(logits, mask, torch.full((6, 1), penalty))
    np.testing.assert_array_equal(ours, RepetitionPenaltyLogitsProcessor(penalty)(said, logits))
