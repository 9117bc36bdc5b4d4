"""The dual-AR model against golden values of the published implementation."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from parity import DATA, golden, tiny_model

from inference.dual_ar import DualAR
from inference.generate import generate
from inference.messages import Sampling
from inference.runner import ARRunner
from inference.transformer import attend_causal, rope_table

GREEDY = Sampling(temperature=1.0, top_k=1, top_p=1.0, max_new_tokens=20)


@pytest.fixture(params=["a", "b"])
def case(request):
    return tiny_model(request.param), golden(f"ar_tiny_{request.param}")


def allowed(model: DualAR, full_vocabulary: np.ndarray) -> np.ndarray:
    """Columns of the ids that can be chosen."""
    return full_vocabulary[..., model.allowed_ids.numpy()]


def test_fill_makes_the_weights_of_the_fixtures():
    from fill import fill

    for name, entry in json.loads((DATA / "fill_check.json").read_text()).items():
        values = fill(name, entry["shape"])
        np.testing.assert_allclose(values.reshape(-1)[:4], entry["first4"], rtol=1e-6)
        assert values.astype(np.float64).sum() == pytest.approx(entry["sum_f64"], abs=1e-4)


@pytest.mark.parametrize("key, base, head_dim", [("lm_base1e6_hd64", 1e6, 64), ("codec_base1e4_hd64", 1e4, 64)])
def test_rope_tables_are_exact(key, base, head_dim):
    values = golden("rope")
    table = rope_table(2048, head_dim, base).numpy()
    np.testing.assert_array_equal(table[values["rows"]], values[key])


def test_whole_prompt(case):
    model, values = case
    packed = torch.from_numpy(values["prompt"])
    embedded = model.embed(packed)
    np.testing.assert_allclose(embedded[0], values["embedded"], atol=5e-5)
    hidden = model.slow(embedded, torch.arange(packed.shape[-1])[None], attend_causal)
    np.testing.assert_allclose(hidden[0], values["hidden"], atol=5e-5)
    logits = model.semantic_logits(model.norm(hidden))
    np.testing.assert_allclose(logits[0], allowed(model, values["logits"]), atol=5e-5)


def test_prefill_then_single_steps(case):
    model, values = case
    packed = values["prompt"][0]
    runner = ARRunner(model, width=4, slots=2)
    sequence, rows = runner.sequence(1, packed[:, :16], 0, GREEDY, 0), torch.tensor([1, 2, 2, 2])
    with torch.inference_mode():
        for step, expected in enumerate(values["step_logits"]):
            hidden = runner.frame.slow(rows, runner.attend([sequence], rows))
            logits = model.semantic_logits(model.norm(hidden))[0]
            np.testing.assert_allclose(logits, allowed(model, expected), atol=5e-5)
            np.testing.assert_allclose(model_fast_hidden(model, hidden[0]), values["step_fast_hidden"][step], atol=5e-5)
            if step < 8:
                sequence.length += 1
                runner.state.open(1, packed[:, 16 + step], sequence.length, GREEDY, 0)


def model_fast_hidden(model: DualAR, hidden: torch.Tensor) -> torch.Tensor:
    return model.norm(hidden) if model.config.norm_fastlayer_input else hidden


def test_fast_logits(case):
    model, values = case
    hidden, codes = torch.from_numpy(values["fast_hidden_in"]), torch.from_numpy(values["fast_codes"])
    x = torch.cat((model.fast_project_in(hidden)[:, None], model.fast_embeddings(codes[:, :-1])), dim=1)
    np.testing.assert_allclose(model.fast(x, 0, attend_causal), values["fast_logits"], atol=2e-5)


def test_greedy_codes(case):
    model, values = case
    codes = generate(ARRunner(model, width=1, slots=1), [values["prompt"][0]], [GREEDY])[0]
    np.testing.assert_array_equal(codes, values["greedy_codes"][0])


def test_sampled_codes_with_the_recorded_uniforms(case):
    model, values = case
    normal, high = (allowed(model, values[f"sampled_u_{draw}"]) for draw in ("normal", "high"))
    fast = values["sampled_u_fast"].reshape(len(normal), -1)
    frames = np.concatenate((normal, high, fast), axis=1)
    runner = ARRunner(model, width=2, slots=1, draw=lambda sequence: frames[sequence.step])
    codes = generate(runner, [values["prompt"][0]], [Sampling(max_new_tokens=len(frames))])[0]
    np.testing.assert_array_equal(codes, values["sampled_codes"][0])


def test_a_batch_equals_each_alone(case):
    model, values = case
    prompts = [packed[:, mask > 0] for packed, mask in zip(values["batch_prompt"], values["batch_mask"], strict=True)]
    codes = generate(ARRunner(model, width=4, slots=3), prompts, [GREEDY] * 3)
    np.testing.assert_array_equal(np.stack(codes), values["batch_greedy_codes"])


@pytest.mark.parametrize("which", ["a", "b"])
def test_rows_end_one_by_one(which):
    values = golden(f"ar_tiny_{which}")
    model = (
        tiny_model(which, eos_token_id=int(values["eos_token_id"])) if "eos_token_id" in values else tiny_model(which)
    )
    prompts = [packed[:, mask > 0] for packed, mask in zip(values["batch_prompt"], values["batch_mask"], strict=True)]
    codes = generate(ARRunner(model, width=4, slots=3), prompts, [GREEDY] * 3)
    assert [c.shape[1] for c in codes] == values["eos_code_lengths"].tolist()
    for row, expected in zip(codes, values["eos_codes"], strict=True):
        np.testing.assert_array_equal(row, expected[:, : row.shape[1]])


def test_the_slot_bounds_the_frames(case):
    model, values = case
    codes = generate(ARRunner(model, width=1, slots=1), [values["long_prompt"][0]], [GREEDY])[0]
    np.testing.assert_array_equal(codes, values["long_codes"][0])


def test_a_prompt_that_fills_the_slot_is_refused(case):
    model, _ = case
    with pytest.raises(ValueError, match="128 of 128 positions"):
        ARRunner(model, width=1, slots=1).sequence(0, np.zeros((5, 128), dtype=np.int64), 0, GREEDY, 0)
