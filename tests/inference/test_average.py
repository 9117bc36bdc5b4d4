"""What was measured of late."""

from __future__ import annotations

import pytest

from inference.average import MovingAverage


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
