"""Who runs next, who gets a slot, whose rate fits."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from inference.scheduler import GRACE_S, Guard, Scheduler

ALL = 100.0  # capacity enough for all
_numbers = itertools.count(1)


@dataclass(eq=False)
class Speech:
    """A stream whose listener has `audio` seconds left to hear at time 0, None before its first chunk."""

    name: str
    audio: float | None = None
    credit: bool = True
    listener: int = field(default_factory=lambda: next(_numbers))

    def slack(self, now: float) -> float | None:
        return None if self.audio is None else self.audio - now


def safe(stream: Speech) -> Guard:
    return Guard(0.0)


def running(scheduler: Scheduler, *streams: Speech) -> None:
    for stream in streams:
        scheduler.add(stream, 0.0)
        assert scheduler.admit(0.0, ALL, safe) is stream


def waiting(scheduler: Scheduler, *streams: Speech, now: float = 0.0) -> None:
    for stream in streams:
        scheduler.add(stream, now)


def admitted(scheduler: Scheduler, now: float = 0.0, capacity: float = ALL) -> list[str]:
    """Who is admitted, one step after the other, until nobody is."""
    return names(list(iter(lambda: scheduler.admit(now, capacity, safe), None)))


def names(streams: list[Speech]) -> list[str]:
    return [stream.name for stream in streams]


def test_the_least_slack_runs_first():
    scheduler = Scheduler(width=2, residents=8)
    running(scheduler, Speech("a", 3.0), Speech("b", 1.0), Speech("c", 2.0))
    assert names(scheduler.batch(0.0, Guard(0.1))) == ["b", "c"]


def test_who_has_heard_nothing_comes_before_those_with_time():
    scheduler = Scheduler(width=2, residents=8)
    running(scheduler, Speech("a", 3.0), Speech("b", 1.0), Speech("new"), Speech("newer"))
    assert names(scheduler.batch(0.0, Guard(0.1))) == ["new", "newer"]


def test_who_would_run_dry_comes_before_newcomers():
    scheduler = Scheduler(width=2, residents=8)
    running(scheduler, Speech("a", 0.05), Speech("b", 1.0), Speech("new"))
    assert names(scheduler.batch(0.0, Guard(0.1))) == ["a", "new"]


def test_many_who_are_nearly_dry_need_more_time_than_one():
    """The third in line waits for the first two: with the same slack it is safe alone, and not behind them."""
    scheduler = Scheduler(width=3, residents=8)
    running(scheduler, Speech("c", 0.25), Speech("new"))
    assert names(scheduler.batch(0.0, Guard(0.1, 0.1))) == ["new", "c"]
    running(scheduler, Speech("a", 0.15), Speech("b", 0.2))
    assert names(scheduler.batch(0.0, Guard(0.1, 0.1))) == ["a", "b", "c"]


def test_without_credit_nobody_runs():
    scheduler = Scheduler(width=2, residents=8)
    paused = Speech("a", 1.0)
    running(scheduler, paused)
    paused.credit = False
    assert scheduler.batch(0.0, Guard(0.1)) == [] and scheduler.idle(0.0, ALL)
    paused.credit = True
    assert names(scheduler.batch(0.0, Guard(0.1))) == ["a"] and not scheduler.idle(0.0, ALL)


def test_slots_go_in_order_of_arrival_and_come_back():
    scheduler = Scheduler(width=4, residents=2)
    first, second, third = (Speech(name) for name in "abc")
    running(scheduler, first, second)
    waiting(scheduler, third)
    assert admitted(scheduler) == [] and scheduler.running == [first, second]
    scheduler.remove(first, 0.0)
    scheduler.release(first.listener)
    assert admitted(scheduler) == ["c"]
    assert scheduler.running == [second, third] and not scheduler.waiting


def test_no_prefill_while_it_would_make_a_speaker_dry():
    scheduler = Scheduler(width=4, residents=4)
    running(scheduler, Speech("a", 0.05))
    waiting(scheduler, Speech("new"))
    assert scheduler.admit(0.0, ALL, lambda stream: Guard(0.06)) is None
    assert scheduler.admit(0.0, ALL, lambda stream: Guard(0.04)) is not None


def test_who_is_itself_the_tightest_does_not_wait_for_the_others():
    scheduler = Scheduler(width=4, residents=4)
    speaker, next_one = Speech("a", 0.05), Speech("b")
    running(scheduler, speaker, next_one)
    scheduler.remove(next_one, 0.0)
    waiting(scheduler, Speech("b again", 0.03, listener=next_one.listener))
    assert scheduler.admit(0.0, ALL, lambda stream: Guard(0.06)).name == "b again"


def test_no_more_listeners_than_fit_are_taken_on():
    scheduler = Scheduler(width=4, residents=8)
    waiting(scheduler, *(Speech(name) for name in "abc"))
    assert admitted(scheduler, capacity=2.9) == ["a", "b"]
    assert not scheduler.idle(0.0, 2.9)
    assert admitted(scheduler, capacity=3.0) == ["c"]


def test_one_listener_is_always_served():
    scheduler = Scheduler(width=4, residents=8)
    waiting(scheduler, Speech("a"), Speech("b"))
    assert admitted(scheduler, capacity=0.2) == ["a"]


def test_a_burst_is_taken_on_as_fast_as_a_step_serves_it():
    """The averages of an idle machine may be wrong: what the first ones take is measured before the next ones come."""
    scheduler = Scheduler(width=2, residents=8)
    burst = [Speech(name) for name in "abcd"]
    waiting(scheduler, *burst)
    assert admitted(scheduler) == ["a", "b"]
    burst[0].audio = 0.2
    assert admitted(scheduler) == ["c"]


def test_who_speaks_goes_on_whatever_fits():
    """A share is kept from segment to segment; the capacity that has shrunk meanwhile is a newcomer's problem."""
    scheduler = Scheduler(width=4, residents=8)
    speakers = [Speech("a", 1.0), Speech("b", 1.0)]
    running(scheduler, *speakers)
    waiting(scheduler, Speech("new"))
    for speaker in speakers:
        scheduler.remove(speaker, 0.5)
    waiting(scheduler, *(Speech(s.name + "2", 1.0, listener=s.listener) for s in speakers), now=0.5)
    assert admitted(scheduler, 0.5, capacity=1.0) == ["a2", "b2"]


def test_a_share_is_free_once_it_is_released():
    scheduler = Scheduler(width=4, residents=8)
    speaker = Speech("a", 9.0)
    running(scheduler, speaker)
    waiting(scheduler, Speech("new"))
    scheduler.remove(speaker, 0.0)
    assert admitted(scheduler, capacity=1.0) == []
    scheduler.release(speaker.listener)
    assert admitted(scheduler, capacity=1.0) == ["new"]


def test_who_waits_for_text_loses_its_share_and_comes_back_before_newcomers():
    """The listener is dry at 2 s: a moment later its share is someone else's, or its own again."""
    scheduler = Scheduler(width=4, residents=8)
    speaker = Speech("a", 2.0)
    running(scheduler, speaker)
    waiting(scheduler, Speech("new"), Speech("newer"))
    scheduler.remove(speaker, 1.0)
    later = 2.0 + GRACE_S
    assert admitted(scheduler, later - 0.01, capacity=1.0) == []
    assert scheduler.listeners(later - 0.01) == 1
    assert admitted(scheduler, later + 0.01, capacity=1.0) == ["new"]
    waiting(scheduler, Speech("a2", listener=speaker.listener), now=later + 0.01)
    assert admitted(scheduler, later + 0.01, capacity=2.0) == ["a2"]


def test_who_was_released_comes_back_as_a_newcomer():
    scheduler = Scheduler(width=4, residents=8)
    speaker = Speech("a", 0.0)
    running(scheduler, speaker)
    scheduler.remove(speaker, 0.0)
    scheduler.release(speaker.listener)
    waiting(scheduler, Speech("new"), Speech("a2", listener=speaker.listener))
    assert admitted(scheduler, capacity=1.0) == ["new"]


def test_what_a_listener_has_not_heard_yet_is_known():
    scheduler = Scheduler(width=4, residents=8)
    speaker = Speech("a", 2.0)
    running(scheduler, speaker)
    scheduler.remove(speaker, 1.0)
    assert scheduler.dry_at(speaker.listener, 1.5) == 2.0
    assert scheduler.dry_at(speaker.listener, 2.5) is None and scheduler.dry_at(12345, 1.5) is None


def test_a_waiting_stream_can_be_removed():
    scheduler = Scheduler(width=1, residents=1)
    stream = Speech("a")
    waiting(scheduler, stream)
    scheduler.remove(stream, 0.0)
    assert scheduler.idle(0.0, ALL) and admitted(scheduler) == []
