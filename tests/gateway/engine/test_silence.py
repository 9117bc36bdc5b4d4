"""A stage hangs when it stays silent for longer than it said, and not because the gateway did not listen."""

from __future__ import annotations

from gateway.engine.silence import Silence
from inference.messages import Beat


def test_without_a_promise_none_is_broken():
    silence = Silence()
    assert [silence.look(now) for now in (0, 1e6, 2e6)] == [None] * 3


def test_a_broken_promise_is_seen_at_the_second_look():
    silence = Silence()
    silence.heard(Beat(0, 5.0), now=10)
    silence.heard(Beat(1, 3.0), now=10)
    assert [silence.look(now) for now in (12.9, 13.1, 13.2)] == [None, None, 1]


def test_a_beat_that_was_read_late_counts():
    silence = Silence()
    silence.heard(Beat(1, 3.0), now=10)
    assert silence.look(100) is None  # the gateway slept
    silence.heard(Beat(1, 3.0), now=100)
    assert [silence.look(now) for now in (100.1, 103.1)] == [None, None]


def test_the_last_word_counts():
    silence = Silence()
    silence.heard(Beat(0, 30.0), now=10)
    silence.heard(Beat(0, 3.0), now=11)
    assert [silence.look(now) for now in (13.9, 14.1, 14.2)] == [None, None, 0]
