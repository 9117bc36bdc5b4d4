"""Who runs next, who gets a slot."""

from __future__ import annotations

from dataclasses import dataclass

from inference.scheduler import Scheduler


@dataclass(eq=False)
class Listener:
    """A stream with `audio` seconds left to hear at time 0, None before its first chunk."""

    name: str
    audio: float | None = None
    credit: bool = True

    def slack(self, now: float) -> float | None:
        return None if self.audio is None else self.audio - now


def running(scheduler: Scheduler, *listeners: Listener) -> None:
    for listener in listeners:
        scheduler.add(listener)
        assert scheduler.admit(0.0, 0.0) is listener


def names(streams: list[Listener]) -> list[str]:
    return [stream.name for stream in streams]


def test_the_least_slack_runs_first():
    scheduler = Scheduler(width=2, residents=8)
    running(scheduler, Listener("a", 3.0), Listener("b", 1.0), Listener("c", 2.0))
    assert names(scheduler.batch(0.0, guard_s=0.1)) == ["b", "c"]


def test_who_has_heard_nothing_comes_before_those_with_time():
    scheduler = Scheduler(width=2, residents=8)
    running(scheduler, Listener("a", 3.0), Listener("b", 1.0), Listener("new"), Listener("newer"))
    assert names(scheduler.batch(0.0, guard_s=0.1)) == ["new", "newer"]


def test_who_would_run_dry_comes_before_newcomers():
    scheduler = Scheduler(width=2, residents=8)
    running(scheduler, Listener("a", 0.05), Listener("b", 1.0), Listener("new"))
    assert names(scheduler.batch(0.0, guard_s=0.1)) == ["a", "new"]


def test_without_credit_nobody_runs():
    scheduler = Scheduler(width=2, residents=8)
    paused = Listener("a", 1.0)
    running(scheduler, paused)
    paused.credit = False
    assert scheduler.batch(0.0, 0.1) == [] and scheduler.idle()
    paused.credit = True
    assert names(scheduler.batch(0.0, 0.1)) == ["a"] and not scheduler.idle()


def test_slots_go_in_order_of_arrival_and_come_back():
    scheduler = Scheduler(width=4, residents=2)
    first, second, third = (Listener(name) for name in "abc")
    running(scheduler, first, second)
    scheduler.add(third)
    assert scheduler.admit(0.0, 0.0) is None and scheduler.running == [first, second]
    scheduler.remove(first)
    assert scheduler.admit(0.0, 0.0) is third
    assert scheduler.running == [second, third] and not scheduler.waiting


def test_no_prefill_while_it_would_make_a_speaker_dry():
    scheduler = Scheduler(width=4, residents=4)
    running(scheduler, Listener("a", 0.05))
    scheduler.add(Listener("new"))
    assert scheduler.admit(0.0, prefill_s=0.06) is None
    assert scheduler.admit(0.0, prefill_s=0.04) is not None


def test_a_waiting_stream_can_be_removed():
    scheduler = Scheduler(width=1, residents=1)
    waiting = Listener("a")
    scheduler.add(waiting)
    scheduler.remove(waiting)
    assert scheduler.idle() and scheduler.admit(0.0, 0.0) is None
