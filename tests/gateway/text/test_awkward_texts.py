"""A corpus of awkward texts: however they are cut into messages, the model is given the same, and nothing is lost."""

from __future__ import annotations

import random
import re
import time
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import AWKWARD, AWKWARD_TEXTS, segment

from gateway.text.markup import Markup
from gateway.text.segmenter import Segment, Segmenter

# One character a message, then pieces of random lengths like those of a language model.
LENGTHS = [(1,), (2,), (1, 2, 3, 5), (1, 1, 4, 9, 30)]
MARKUP = re.compile(r"\*\*(?!\d)|~~|`|\]\(|\]|\[|^#{1,6} |<\|im_end|<br|</|&amp;|\|$|---\||[\ue000-\uf8ff]")


def cut(text: str, lengths: tuple[int, ...], seed: int = 0) -> Iterator[str]:
    """`text` as messages whose lengths are drawn from `lengths`."""
    choices, position = random.Random(seed), 0
    while position < len(text):
        length = choices.choice(lengths)
        yield text[position : position + length]
        position += length


def test_the_corpus_is_large_and_of_many_kinds() -> None:
    assert len(set(AWKWARD_TEXTS)) >= 300
    assert len(AWKWARD) >= 35


@pytest.mark.parametrize("kind", AWKWARD)
@pytest.mark.parametrize("granularity", ["clause", "sentence", "none"])
def test_messages_do_not_matter(kind: str, granularity: str) -> None:
    def run(messages: Iterator[str] | list[str]) -> list[Segment]:
        return segment(messages, Segmenter(granularity))

    for text in AWKWARD[kind]:
        whole = run([text])
        assert "".join(piece.text for piece in whole) == text
        for seed, lengths in enumerate(LENGTHS):
            assert run(cut(text, lengths, seed)) == whole


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_messages_do_not_matter_when_texts_follow_each_other(data: st.DataObject) -> None:
    text = data.draw(st.lists(st.sampled_from(AWKWARD_TEXTS), min_size=1, max_size=4).map("".join))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=20)))
    options = {
        "granularity": data.draw(st.sampled_from(["clause", "sentence", "none"])),
        "preparation": data.draw(st.sampled_from(["full", "markup", "none"])),
        "language": data.draw(st.sampled_from(["en", "de", "fr", "zh", "ja", "pl", None])),
    }
    messages = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert segment(messages, Segmenter(**options)) == segment([text], Segmenter(**options))


@pytest.mark.parametrize("kind", [kind for kind in AWKWARD if kind not in ("escapes", "control tokens", "html")])
def test_markup_is_never_spoken(kind: str) -> None:
    for text in AWKWARD[kind]:
        for piece in segment([text]):
            assert not MARKUP.search(piece.spoken), (text, piece.spoken)


@pytest.mark.parametrize("kind", AWKWARD)
def test_no_segment_is_only_punctuation(kind: str) -> None:
    """Nor of invisible characters: what the model is given can be spoken, in one line."""
    for text in AWKWARD[kind]:
        for spoken in (piece.spoken for piece in segment([text], Segmenter("sentence"))):
            assert spoken == " ".join(spoken.split())
            assert not spoken or any(map(str.isalnum, spoken))
            assert not {unicodedata.category(character) for character in spoken} & {"Cc", "Cs", "Co"}


@pytest.mark.parametrize("kind", AWKWARD)
def test_no_half_word_is_spoken_while_more_may_come(kind: str) -> None:
    """Cut off anywhere, a text has only been spoken up to a place where no word goes on."""
    for text in AWKWARD[kind]:
        segmenter, ready = Segmenter("clause", max_buffer_delay_s=0.0), ""
        for character in text:
            ready += "".join(piece.text for piece in segmenter.push(character, 0.0))
            if ready and len(ready) < len(text) and len(max(text.split(), key=len)) < 100:
                before, after = ready[-1], text[len(ready)]
                assert not (before.isascii() and after.isascii() and before.isalnum() and after.isalnum())


@pytest.mark.parametrize("text", AWKWARD_TEXTS[::10])
def test_a_flush_gives_all_that_was_received(text: str) -> None:
    segmenter, received, given_out = Segmenter("clause"), "", ""
    for message in cut(text, (1, 2, 3)):
        received += message
        segments = segmenter.push(message, 0.0) + segmenter.flush()
        given_out += "".join(piece.text for piece in segments)
        assert given_out == received
        assert segmenter.buffered == 0


def test_nothing_is_changed_when_preparation_is_off() -> None:
    for text in AWKWARD_TEXTS:
        whole = " ".join(
            piece.spoken for piece in segment([text], Segmenter("none", preparation="none")) if piece.spoken
        )
        if whole and len(text) < 150:
            assert whole == " ".join(text.split())


def seconds(text: str) -> float:
    """CPU time for `text`, one character a message."""
    segmenter = Segmenter("clause")
    begin = time.process_time()
    for character in text:
        segmenter.push(character, 0.0)
    segmenter.flush()
    return time.process_time() - begin


def test_cost_grows_with_the_number_of_characters() -> None:
    corpus = "\n".join(random.Random(1).sample(AWKWARD_TEXTS, len(AWKWARD_TEXTS))) * 3
    half, whole = (min(seconds(corpus[:length]) for _ in range(3)) for length in (10_000, 20_000))
    assert whole < 3 * half
    assert whole < 1.0


PATHOLOGICAL = (
    "](a|](|[|![|*|**|_|`|~~|```\n|#|<|<b|<a b=|<|a|<!-- a|&a|&#1|\\|https://a|www.|ht|- a\n|a\\||1,000.|$1".split("|")
)


@pytest.mark.parametrize("unit", [*PATHOLOGICAL, "|", "| a ", "|-", "🏽", "\u200d", "\ue000", "-", "=", ">", "1. a\n"])
def test_no_text_is_costly(unit: str) -> None:
    text = (unit * 4000)[:4000]
    half, whole = (min(seconds(text[:length]) for _ in range(2)) for length in (2000, 4000))
    assert whole < 3.5 * half + 0.05


def test_what_waits_to_be_decided_is_bounded() -> None:
    """So a text that begins like a link or a tag, and is none, is spoken all the same."""
    for beginning in ("[a](http://", "<a b=", "<!-- ", "&", "<|", "```", "https://", "| --", "[^"):
        reader, most = Markup(), 0
        for character in beginning + "x" * 5000:
            list(reader.push(character))
            most = max(most, reader.waiting)
        assert most < 2500
