"""What a listener has heard of a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.codes import LocalProtocolError
from protocol.record import SECONDS_PER_CHARACTER, SpokenRecord

RATE = 1000


def _record(*segments: tuple[str, int], received: str = "", total: int | None = None) -> SpokenRecord:
    """Segments of (text, samples sent); the last one will have `total` samples."""
    record = SpokenRecord(RATE)
    record.receive("".join(text for text, _ in segments) + received)
    for text, samples in segments:
        record.begin(text)
        record.add(samples, total if text is segments[-1][0] else samples)
    return record


@pytest.mark.parametrize(
    ("offset_ms", "spoken"),
    [
        (0, ""),
        (99, ""),
        (440, ""),
        (450, "One "),
        (500, "One "),
        (1000, "One two. "),
        (1600, "One two. Three "),
        (99999, "One two. Three four."),
    ],
)
def test_an_offset_is_cut_back_to_a_word_start(offset_ms, spoken):
    record = _record(("One two. ", 1000), ("Three four.", 1000), total=1000)
    heard, rest = record.split(offset_ms)
    assert heard == spoken and heard + rest == "One two. Three four."


def test_without_an_offset_all_that_was_sent_counts_as_heard():
    assert _record(("One two. ", 1000), ("Three", 500), total=500).split(None) == ("One two. Three", "")


def test_of_an_unfinished_segment_a_part_is_heard():
    text = "Ten letter words and more of them"
    sent = int(len(text) * SECONDS_PER_CHARACTER * RATE / 2)
    heard, rest = _record((text, sent)).split(None)
    assert heard == "Ten letter " and heard + rest == text


def test_text_that_is_not_announced_is_not_heard():
    assert _record(("One. ", 10), received="Two.", total=10).split(None) == ("One. ", "Two.")


def test_a_script_without_spaces_is_cut_between_characters():
    assert _record(("今天天气很好", 600), total=600).split(350) == ("今天天", "气很好")


def test_segments_must_follow_the_text():
    record = SpokenRecord(RATE)
    record.receive("One. ")
    record.receive("Two.")
    record.begin("One. ")
    with pytest.raises(LocalProtocolError):
        record.begin("two.")
    assert record.pending == "Two."


@given(
    st.lists(st.tuples(st.text(max_size=20), st.integers(0, 5000)), max_size=6),
    st.text(max_size=10),
    st.one_of(st.none(), st.floats(0, 1e9)),
    st.one_of(st.none(), st.integers(0, 6000)),
)
def test_the_two_parts_are_always_the_whole_text(segments, pending, offset, total):
    record = SpokenRecord(RATE)
    record.receive("".join(text for text, _ in segments) + pending)
    for text, samples in segments:
        record.begin(text)
        record.add(samples, None if total is None else max(total, samples))
    heard, rest = record.split(offset)
    assert heard + rest == "".join(text for text, _ in segments) + pending


@given(st.text(min_size=1, max_size=30), st.lists(st.floats(0, 2000), min_size=2, max_size=5))
def test_more_time_never_means_less_heard(text, offsets):
    record = _record((text, 1000), total=1000)
    lengths = [len(record.split(offset)[0]) for offset in sorted(offsets)]
    assert lengths == sorted(lengths)
