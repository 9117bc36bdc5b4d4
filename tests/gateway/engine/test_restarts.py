"""Stages that are of use come back at once, and those that only die less and less often."""

from __future__ import annotations

from gateway.engine.restarts import FIRST_S, MOST_S, RestartPause


def test_what_was_of_use_comes_back_soon_however_often():
    pause = RestartPause()
    assert [pause.after(useful=True) for _ in range(100)] == [FIRST_S] * 100


def test_a_crash_loop_slows_down_to_a_limit():
    pause = RestartPause()
    waits = [pause.after(useful=False) for _ in range(200)]
    assert waits[:3] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S]
    assert waits == sorted(waits) and waits[-1] == MOST_S


def test_one_useful_life_ends_the_loop():
    pause = RestartPause()
    for _ in range(5):
        pause.after(useful=False)
    assert pause.after(useful=True) == FIRST_S
    assert pause.after(useful=False) == FIRST_S
