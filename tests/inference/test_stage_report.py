"""What stages tell of their work, and when."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from inference.report import REPORT_EVERY_S, ARCounts, CodecCounts, ReportTimer


@dataclass(eq=False)
class Listener:
    """Dry at `dry_at`, None: it hears nothing yet."""

    dry_at: float | None
    credit: bool = True

    def slack(self, now: float) -> float | None:
        return None if self.dry_at is None else self.dry_at - now


def test_a_stage_reports_once_a_second_and_when_it_becomes_idle():
    timer, busy = ReportTimer(), True
    told = [now / 10 for now in range(35) if timer.due(now / 10, busy, counted=True)]
    assert told == [0.0, 1.0, 2.0, 3.0] and REPORT_EVERY_S == 1.0
    assert timer.due(3.5, busy=False, counted=True)
    assert not any(timer.due(now, busy=False, counted=False) for now in (3.6, 5.0, 100.0))
    assert timer.due(100.1, busy, counted=False)  # streams are there, though nothing was done yet


def test_an_idle_stage_that_was_never_seen_busy_tells_what_it_did():
    timer = ReportTimer()
    assert timer.due(0.0, busy=False, counted=False)  # the first one: how it stands
    assert timer.due(0.1, busy=False, counted=True)
    assert not timer.due(0.2, busy=False, counted=False)


def test_stage_0_counts_and_begins_anew():
    counts = ARCounts(slots=8)
    counts.prefilled(0.05)
    counts.stepped(0.02, 3)
    counts.stepped(0.01, 1)
    for _ in range(3):
        counts.made_frame()
    running, waiting = [Listener(5.0), Listener(None), Listener(4.0, credit=False)], [Listener(None), Listener(3.0)]
    counts.look(1.0, running, waiting)
    report = counts.take(running, waiting, listeners=5, capacity=7.5)
    assert report.steps == ((0.02, 3), (0.01, 1)) and report.prefills == (0.05,) and report.frames == 3
    assert (report.resident, report.waiting, report.paused) == (2, 2, 1)
    assert (report.listeners, report.capacity, report.slots_used, report.slots) == (5, 7.5, 3, 8)
    assert report.slacks == (4.0, 2.0) and report.least_slack == 2.0
    assert (report.underruns, report.underrun_s) == (0, 0.0)
    empty = counts.take([], [], 0, 1.0)
    assert not (empty.steps or empty.prefills or empty.frames or empty.slacks) and empty.least_slack is None


def test_each_underrun_is_counted_once_and_for_as_long_as_it_lasts():
    counts, late, fine = ARCounts(slots=4), Listener(1.0), Listener(9.0)
    for now in (0.9, 1.2, 1.5, 1.8):
        counts.look(now, [late, fine], [])
    late.dry_at = 3.0  # it was given audio at 1.8 s
    counts.look(2.0, [late, fine], [])
    report = counts.take([late, fine], [], 2, 4.0)
    assert report.underruns == 1 and report.underrun_s == pytest.approx(0.8)
    assert report.least_slack == pytest.approx(-0.8)
    counts.look(3.5, [late], [])
    assert counts.take([late], [], 1, 4.0).underruns == 1


def test_a_listener_who_has_no_room_is_not_dry():
    counts = ARCounts(slots=4)
    counts.look(5.0, [Listener(1.0, credit=False)], [])
    report = counts.take([], [], 0, 1.0)
    assert report.underruns == 0 and report.least_slack is None


def test_stage_1_counts_and_begins_anew():
    counts = CodecCounts()
    counts.decoded(0.03, 16)
    counts.decoded(0.01, 4)
    assert counts.due(0.0, busy=True)
    report = counts.take(streams=2, backlog_frames=21)
    assert (report.decodes, report.frames, report.streams, report.backlog_frames) == ((0.03, 0.01), 20, 2, 21)
    assert counts.take(0, 0).decodes == ()
