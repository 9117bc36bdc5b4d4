"""JSON with halves of characters, nesting, and what is quoted back."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.codes import Refusal
from protocol.text import is_whole, join_halves, mended, parse_json, shown

HALF = r'"\ud83d"'
ANY_CHARACTERS = st.text(st.characters(codec=None, categories=None))


def test_lone_surrogates_are_read():
    assert parse_json(f'{{"text": {HALF}}}') == {"text": "\ud83d"}
    assert parse_json(r'{"text": "\ud83d\ude00"}') == {"text": "\N{GRINNING FACE}"}


@pytest.mark.parametrize(
    "data",
    [
        "",
        "{",
        "nul",
        "{'a': 1}",
        '{"a": NaN}',
        f'{{"a": NaN, "b": {HALF}}}',
        f"[{HALF}",
        "[" * 70 + HALF + "]" * 70,
        '"\\ud83d' + '\\"' * 50000,
        f"[{HALF}" + ",[]" * 5000 + "]",
    ],
)
def test_what_is_not_json_is_refused(data):
    with pytest.raises(Refusal) as refused:
        parse_json(data)
    assert refused.value.code == "bad_json"


def test_nesting_is_allowed_to_a_depth():
    assert parse_json("[" * 64 + HALF + "]" * 64)


def test_refusing_takes_time_in_proportion():
    began = time.process_time()
    with pytest.raises(Refusal):
        parse_json('"\\ud83d' + '\\"' * 2_000_000)
    assert time.process_time() - began < 2


@given(st.text())
def test_text_split_into_halves_is_whole_again(text):
    units = text.encode("utf-16-le", "surrogatepass")
    halves = [units[i : i + 2].decode("utf-16-le", "surrogatepass") for i in range(0, len(units), 2)]
    out, held = "", ""
    for half in halves:
        whole, held = join_halves(held, half)
        out += whole
    assert out + mended(held) == text


@given(ANY_CHARACTERS)
def test_mended_text_can_always_be_sent(text):
    assert is_whole(mended(text))
    assert mended(text).encode().decode() == mended(text)
    assert mended(text) == text if is_whole(text) else "\ufffd" in mended(text) or len(mended(text)) < len(text)


@given(st.one_of(ANY_CHARACTERS, st.integers(), st.floats(), st.lists(st.integers())))
def test_what_is_quoted_back_is_short_and_plain(value):
    assert shown(value).isascii() and shown(value).isprintable() and len(shown(value)) <= 60
    json.dumps(shown(value))
