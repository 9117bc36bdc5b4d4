"""Text preparation takes out what cannot be spoken, and nothing else."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import said

from gateway.text.characters import is_speech

UNSPEAKABLE = [
    "", " ", "\n\n", "\t", "...", "!?", "—", "👍", "```", "** **", "\u200b", "\ufeff", "\u00a0", "\ufffd", "\ud83d",
    ")", '"', "👩‍👩‍👧", "🇩🇪", "❤️", "👋🏽", "→", "---", "# ", "<|im_end|>", "_", "\x00", "~~~",
]  # fmt: skip


@pytest.mark.parametrize("text", UNSPEAKABLE)
def test_nothing_to_speak(text: str) -> None:
    assert said(text) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n\nWhat  is\tthe weather? ", "What is the weather?"),
        ("😄Hi😄 there😄. 😀Again😃!", "Hi there. Again!"),
        ("one👍two", "one two"),
        ("He is **very** _kind_, *really*.", "He is very kind, really."),
        ("2 * 3 = 6, a*b, snake_case, C#, #1", "2 * 3 = 6, a*b, snake_case, C#, #1"),
        ("## Title\n- one\n- two\n> said", "Title. one. two said"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("Use `make` now ~~or never~~", "Use make now or never"),
        ("Hello <|im_end|> world.", "Hello world."),
        ("Hello<|im_end|>world.", "Hello world."),
        ("in\u200bvis\u00adible\ufeff", "invisible"),
        ("\ufffd니다.", "니다."),
        ("20 °C © 2026 ™ № 5 ㎏", "20 °C © 2026 ™ № 5 ㎏"),
        ("1️⃣ first", "1 first"),
        ("He cast [Fireball] at (you).", "He cast Fireball at (you)."),
        (" » Il partit. »Na ja.«", "Il partit. »Na ja.«"),
        ("Done 👍. Yes 👍 , so", "Done. Yes, so"),
        ("Title\n\nText\n\n! so", "Title. Text. ! so"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क्\u200dष", "क्\u200dष"),
        ("-3.5 % at 5 > 4", "-3.5 % at 5 > 4"),
        ("½", "½"),
    ],
)
def test_spoken(text: str, expected: str) -> None:
    assert said(text) == expected


@given(st.text())
def test_spoken_is_stable_and_tidy(text: str) -> None:
    result = said(text)
    assert result == " ".join(result.split())
    assert result == "" or any(map(is_speech, result))


@given(st.lists(st.text(st.characters(categories=["Lu", "Ll", "Lo", "Nd"]), min_size=1), min_size=1))
def test_words_are_never_changed(words: list[str]) -> None:
    heard = said(" 👍 ".join(words)).split(" ")
    assert [unicodedata.normalize("NFKC", word) for word in heard] == [
        unicodedata.normalize("NFKC", word) for word in words
    ]


def test_figures_stay_where_words_would_leave_the_model_no_room() -> None:
    assert said("$77 or 77%", "en") == "seventy-seven dollars or seventy-seven percent"
    assert said("$77, " * 30, "en") == "$77, " * 29 + "$77,"
