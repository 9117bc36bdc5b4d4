"""A stage tells in time when it will be heard again, and not oftener than needed."""

from __future__ import annotations

import pytest
from clocks import Clock

from inference.heart import Heart
from inference.messages import Beat


@pytest.fixture
def sent() -> list[Beat]:
    return []


def heart(sent: list[Beat], clock, wait_s: float = 3.0) -> Heart:
    return Heart(1, wait_s, sent.append, clock)


def test_a_loop_that_turns_quickly_sends_four_beats_a_second(sent):
    clock = Clock()
    stage = heart(sent, clock)
    for _ in range(1000):
        stage.beat()
        clock.now += 0.01
    assert 30 <= len(sent) <= 41 and set(sent) == {Beat(1, 3.0)}


def test_every_promise_is_kept_by_a_loop_that_sleeps(sent):
    clock = Clock()
    stage = heart(sent, clock)
    stage.beat()
    for _ in range(20):
        before = clock()
        clock.now += 0.5
        stage.beat()
        assert clock() < before + sent[-1].within_s


def test_long_work_is_told_before_and_the_end_of_it_after(sent):
    stage = heart(sent, Clock())
    stage.beat()
    stage.long_work(30.0)
    stage.beat()
    assert [beat.within_s for beat in sent] == [3.0, 30.0, 3.0]


def test_work_that_takes_longer_by_itself_gets_more_time(sent):
    stage = heart(sent, Clock())
    stage.beat(expected_s=2.0)
    assert sent == [Beat(1, 11.0)]


def test_a_very_short_wait_does_not_mean_that_a_busy_machine_hangs(sent):
    stage = heart(sent, Clock(), wait_s=0.01)
    stage.beat()
    stage.long_work(0.02)
    assert sent == [Beat(1, 1.0)]
