"""How long stage 1 waits for chunks: 30 s for a stream's first one and 3 s for each later one, as published."""

from __future__ import annotations

import numpy as np
import pytest

from inference.deadlines import StreamDeadlines
from inference.records import (
    CodesChunk,
    ProducerStarted,
    StreamAborted,
    StreamOpened,
    StreamPaused,
    StreamResumed,
)


def chunk(stream_id: int, last: bool = False) -> CodesChunk:
    return CodesChunk(stream_id, 0, np.zeros((10, 4), np.uint16), last)


@pytest.fixture
def deadlines() -> StreamDeadlines:
    """Watches stream 1, opened at second 100."""
    watched = StreamDeadlines(first_chunk_wait_s=30, chunk_wait_s=3)
    watched.feed(StreamOpened(1, 99.0), 100)
    return watched


def test_nothing_is_waited_for_at_first():
    deadlines = StreamDeadlines(30, 3)
    assert deadlines.next_deadline is None and deadlines.expired(1e9) == [] and len(deadlines) == 0


def test_the_first_chunk_may_take_longer(deadlines):
    assert deadlines.next_deadline == 130
    assert deadlines.expired(129.9) == []
    assert deadlines.expired(130) == [1]
    assert deadlines.expired(200) == [] and deadlines.next_deadline is None and len(deadlines) == 0


def test_each_later_chunk_starts_the_shorter_wait_anew(deadlines):
    deadlines.feed(chunk(1), 129)
    assert deadlines.next_deadline == 132
    deadlines.feed(chunk(1), 131)
    assert deadlines.expired(133.9) == [] and deadlines.expired(134) == [1]


@pytest.mark.parametrize("end", [chunk(1, last=True), StreamAborted(1), ProducerStarted()])
def test_a_stream_that_has_ended_is_not_waited_for(deadlines, end):
    deadlines.feed(chunk(1), 101)
    deadlines.feed(end, 102)
    assert deadlines.next_deadline is None and len(deadlines) == 0


def test_a_stream_that_ends_here_is_forgotten(deadlines):
    deadlines.forget(1)
    deadlines.forget(1)
    assert len(deadlines) == 0


def test_a_paused_stream_does_not_time_out(deadlines):
    deadlines.feed(StreamPaused(1), 110)
    assert deadlines.next_deadline is None and deadlines.expired(1e9) == [] and len(deadlines) == 1
    deadlines.feed(StreamResumed(1), 500)
    assert deadlines.next_deadline == 530  # still its first chunk
    deadlines.feed(chunk(1), 501)
    deadlines.feed(StreamPaused(1), 502)
    deadlines.feed(StreamResumed(1), 600)
    assert deadlines.next_deadline == 603


def test_a_chunk_that_was_under_way_does_not_end_the_pause(deadlines):
    deadlines.feed(StreamPaused(1), 101)
    deadlines.feed(chunk(1), 102)
    assert deadlines.next_deadline is None
    deadlines.feed(StreamResumed(1), 200)
    assert deadlines.next_deadline == 203


def test_streams_are_told_apart(deadlines):
    deadlines.feed(StreamOpened(2, 104.0), 105)
    deadlines.feed(chunk(1), 106)
    assert deadlines.next_deadline == 109
    assert deadlines.expired(110) == [1]
    assert deadlines.next_deadline == 135
    assert deadlines.expired(140) == [2]


@pytest.mark.parametrize("record", [chunk(9), StreamPaused(9), StreamResumed(9), StreamAborted(9)])
def test_records_of_unknown_streams_change_nothing(deadlines, record):
    """As those that were under way when the stream was cancelled here."""
    deadlines.feed(record, 101)
    assert len(deadlines) == 1 and deadlines.next_deadline == 130
