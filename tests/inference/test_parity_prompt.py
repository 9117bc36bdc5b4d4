"""Prompt matrices against golden values."""

from __future__ import annotations

import json

import numpy as np
import pytest
from parity import DATA, golden

from inference.config import ArkttsConfig
from inference.messages import Reference
from inference.prompt import PromptBuilder

CASES = json.loads((DATA / "prompt_cases.json").read_text())
CODES = golden("prompt")["codes"]


@pytest.fixture(scope="module")
def builder() -> PromptBuilder:
    begin = CASES["semantic_begin_id"]
    config = ArkttsConfig(semantic_begin_id=begin, semantic_end_id=begin + 4095, eos_token_id=394, pad_token_id=392)
    return PromptBuilder(DATA / "tokenizer.json", config)


def reference(text: str | None, codes: np.ndarray = CODES) -> Reference | None:
    return None if text is None else Reference(text, codes)


@pytest.mark.parametrize("name", [n for n, case in CASES["cases"].items() if "inject" not in n and "batch" not in n])
def test_prompt(builder, name):
    case = CASES["cases"][name]
    prompt = builder.build(case["text"], reference(case.get("reference_text")))
    np.testing.assert_array_equal(prompt.packed, golden("prompt")[f"{name}_prompt"][0])


@pytest.mark.parametrize("name", ["batch", "batch_noref"])
def test_rows_of_a_batch(builder, name):
    case, values = CASES["cases"][name], golden("prompt")
    references = case.get("reference_text", [None, None])
    for row, text in enumerate(case["text"]):
        prompt = builder.build(text, reference(references[row], (CODES, values["codes2"])[row]))
        kept = values[f"{name}_mask"][row] > 0
        np.testing.assert_array_equal(prompt.packed, values[f"{name}_prompt"][row][:, kept])


@pytest.mark.parametrize("name", ["inject_im_end", "inject_semantic"])
def test_what_a_user_writes_never_becomes_a_special_token(builder, name):
    prompt = builder.build(CASES["cases"][name]["text"])
    np.testing.assert_array_equal(prompt.packed[0], golden("prompt")[f"{name}_safe_row0"])
    assert not prompt.packed[1:].any()


def test_the_prefix_depends_on_the_voice_alone(builder):
    one, two = (builder.build(text, reference("small test")) for text in ("Hi.", "the quick brown fox"))
    assert one.prefix == two.prefix
    np.testing.assert_array_equal(one.packed[:, : one.prefix], two.packed[:, : two.prefix])
    np.testing.assert_array_equal(one.packed[:, : one.prefix], builder.prefix(reference("small test")))


@pytest.mark.parametrize(
    "text, voice, message",
    [
        (" \n", None, CASES["errors"]["empty"]),
        ("Hi.", reference(" "), CASES["errors"]["ref_no_text"]),
        ("Hi.", reference("x", np.full((10, 2), 4096)), CASES["errors"]["code_4096"]),
        ("Hi.", reference("x", np.full((10, 2), -1)), CASES["errors"]["neg"]),
        ("Hi.", reference("x", np.zeros((10, 0), dtype=int)), CASES["errors"]["zero_len"]),
    ],
)
def test_errors(builder, text, voice, message):
    with pytest.raises(ValueError) as error:
        builder.build(text, voice)
    assert f"ValueError: {error.value}" == message
