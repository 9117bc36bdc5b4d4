"""What a stage has done since it last told the gateway: pure, with the time as an argument.

Measurements travel one by one, a second's worth at a time, so that only the gateway knows of buckets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain
from math import inf
from typing import Protocol

from inference.messages import ARReport, CodecReport

REPORT_EVERY_S = 1.0


class Speaking(Protocol):
    """What has to be known of a stream of stage 0, see `scheduler.Schedulable`."""

    credit: bool

    def slack(self, now: float) -> float | None:
        """Seconds until its listener is dry, None if it hears nothing yet."""


class ReportTimer:
    """When a stage reports: at first, once a second while it is busy, and when it has become idle."""

    def __init__(self) -> None:
        self._last = -inf
        self._told_idle = False

    def due(self, now: float, busy: bool, counted: bool) -> bool:
        """Whether to report now; True counts as done.  `counted`: something happened since the last report."""
        due = now - self._last >= REPORT_EVERY_S if busy else counted or not self._told_idle
        self._told_idle = not busy
        if due:
            self._last = now
        return due


class ARCounts:
    """Of stage 0.  A stream is dry while its slack is below 0; one that is paused is not looked at."""

    def __init__(self, slots: int) -> None:
        """`slots`: KV slots that there are."""
        self._slots, self._timer = slots, ReportTimer()
        self._dry: set[Speaking] = set()
        self._looked_at = -inf
        self._clear()

    def prefilled(self, seconds: float) -> None:
        """A stream was started."""
        self._prefills.append(seconds)

    def stepped(self, seconds: float, rows: int) -> None:
        """A step was made, for so many streams."""
        self._steps.append((seconds, rows))

    def made_frame(self) -> None:
        """A stream has one more frame; a row that found the end, or whose stream is gone, brings none."""
        self._frames += 1

    def look(self, now: float, running: Iterable[Speaking], waiting: Iterable[Speaking]) -> None:
        """Once a step: who is how close to being dry."""
        since_last, self._looked_at = now - self._looked_at, now
        dry, slacks = set(), []
        for stream in chain(running, waiting):
            slack = stream.slack(now) if stream.credit else None
            if slack is None:
                continue
            slacks.append(slack)
            if slack < 0:
                dry.add(stream)
                self._dry_s += min(-slack, since_last)
        self._underruns += len(dry - self._dry)
        self._dry = dry
        self._slacks = slacks or self._slacks
        self._least = min((self._least, *slacks))

    def due(self, now: float, busy: bool) -> bool:
        """Whether to `take` a report and send it.  `busy`: the stage has streams or listeners."""
        return self._timer.due(now, busy, counted=bool(self._steps or self._prefills))

    def take(
        self, running: Collection[Speaking], waiting: Collection[Speaking], listeners: int, capacity: float
    ) -> ARReport:
        """All since the last one; listeners that were taken on, and how many would fit."""
        report = ARReport(
            steps=tuple(self._steps),
            prefills=tuple(self._prefills),
            frames=self._frames,
            underruns=self._underruns,
            underrun_s=self._dry_s,
            resident=sum(stream.credit for stream in running),
            waiting=sum(stream.credit for stream in waiting),
            paused=sum(not stream.credit for stream in chain(running, waiting)),
            listeners=listeners,
            capacity=capacity,
            slots_used=len(running),
            slots=self._slots,
            slacks=tuple(self._slacks),
            least_slack=None if self._least == inf else self._least,
        )
        self._clear()
        return report

    def _clear(self) -> None:
        self._steps: list[tuple[float, int]] = []
        self._prefills: list[float] = []
        self._slacks: list[float] = []
        self._frames = self._underruns = 0
        self._dry_s, self._least = 0.0, inf


class CodecCounts:
    """Of stage 1."""

    def __init__(self) -> None:
        self._timer = ReportTimer()
        self._decodes: list[float] = []
        self._frames = 0

    def decoded(self, seconds: float, frames: int) -> None:
        """A call of the decoder was made, with so many frames of all its streams together."""
        self._decodes.append(seconds)
        self._frames += frames

    def due(self, now: float, busy: bool) -> bool:
        """Whether to `take` a report and send it.  `busy`: the stage has streams."""
        return self._timer.due(now, busy, counted=bool(self._decodes))

    def take(self, streams: int, backlog_frames: int) -> CodecReport:
        """All since the last one; streams that are open and frames that wait for their decode."""
        report = CodecReport(tuple(self._decodes), self._frames, streams, backlog_frames)
        self._decodes, self._frames = [], 0
        return report
