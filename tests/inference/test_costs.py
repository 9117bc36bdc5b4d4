"""What was measured says how many listeners fit, and who is safe."""

from __future__ import annotations

from math import inf

import pytest

from inference.connector import Feedback
from inference.costs import HEADROOM, Costs

FRAME_RATE = 20.0


def costs(step_s: float = 0.02, prefill_s: float = 0.0, decode_s: float = 0.0, spare_s: float = inf) -> Costs:
    """Of a step four wide, a prefill of 100 columns, a decoded frame; what the codec can spare."""
    made = Costs(4, FRAME_RATE, 4, lambda: Feedback(decode_s, decode_s, 7, spare_s))
    made.stepped(step_s, rows=4)
    made.prefilled(100, prefill_s)
    return made


def test_as_many_listeners_fit_as_full_steps_make_frames_for():
    """A full step makes 4 frames in 20 ms, 200 a second: those of ten listeners."""
    assert costs().capacity() == pytest.approx(HEADROOM * 10)


def test_prefills_take_their_part():
    """50 ms more for each segment of 10 frames double what a frame takes."""
    measured = costs(prefill_s=0.05)
    for _ in range(60):
        measured.ended(10)
    assert measured.capacity() == pytest.approx(HEADROOM * 5, rel=0.01)


def test_the_slower_stage_counts():
    assert costs(decode_s=0.025).capacity() == pytest.approx(HEADROOM * 2)


def test_while_the_codec_is_behind_nobody_is_taken_on():
    """A first chunk needs three steps and two decodes of 4 frames: 0.06 + 0.08 s."""
    assert costs(decode_s=0.01, spare_s=0.15).places() == costs(decode_s=0.01).capacity()
    assert costs(decode_s=0.01, spare_s=0.13).places() == costs(decode_s=0.01, spare_s=-1.0).places() == 0


def test_a_longer_prompt_needs_safer_listeners():
    measured = costs(prefill_s=0.1, decode_s=0.001)
    short, long = measured.guard(50), measured.guard(200)
    assert long.first_s - short.first_s == pytest.approx(0.15)
    assert measured.guard() == measured.guard(100) and long.each_s == short.each_s > 0


def test_one_of_many_gets_its_turn_less_often():
    measured = costs(decode_s=0.002)
    assert measured.pace(3).step_s == pytest.approx(0.02)
    pace = measured.pace(12, pause_s=0.5)
    assert pace.step_s == pytest.approx(0.06) and pace.pause_s == 0.5
    assert pace.decode_s(3) == pytest.approx(0.002 * 12 * 3)
    assert measured.pace(1).decode_s(3) == pytest.approx(0.002 * (7 + 3))
