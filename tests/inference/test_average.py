"""What was measured of late."""

from __future__ import annotations

import pytest

from inference.average import MovingAverage, WorkTime


def test_nothing_measured_is_nothing():
    assert MovingAverage().value == 0.0


def test_the_first_measurement_is_the_value():
    average = MovingAverage()
    average.add(0.04, 4)
    assert average.value == pytest.approx(0.01)


def test_it_follows_a_change_within_some_measurements():
    average = MovingAverage(0.01, 4)
    for _ in range(10):
        average.add(0.5, 25)
    assert average.value == pytest.approx(0.02, rel=0.05)


def test_much_work_counts_for_more_than_little():
    """Calls of 2 and of 25 frames take turns: a frame takes what all of them took, over all frames."""
    average = MovingAverage()
    for _ in range(30):
        average.add(0.013, 2)
        average.add(0.021, 25)
    assert average.value == pytest.approx(0.034 / 27, rel=0.15)


def test_few_listeners_do_not_show_what_many_will_take():
    """Work on a quiet machine tells how it is now; how it is with much to do is what was measured then."""
    work = WorkTime()
    work.add(0.010, 1, busy=False)
    assert work.now == 0.010 < work.busy  # not tried yet: it will be slower
    for _ in range(20):
        work.add(0.018, 1, busy=True)
    for _ in range(100):
        work.add(0.010, 1, busy=False)
    assert work.now == pytest.approx(0.010) and work.busy == pytest.approx(0.018)


def test_a_machine_that_becomes_slow_is_slow_at_once_and_fast_again_only_later():
    work = WorkTime()
    for seconds in [0.01] * 500 + [0.03] * 10:
        work.add(seconds, 1, busy=True)
    assert work.now > 0.027 and work.busy == work.now
    work.add(0.2, 1, busy=False)  # little at once, which costs more for each unit
    assert work.now > 0.05 > work.busy
    for _ in range(30):
        work.add(0.01, 1, busy=True)
    assert work.now < 0.0105 < work.busy
