"""What is known of one context's speech, and the things its outbox holds until it is their turn to be sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from gateway.engine.stream import EngineStream
from gateway.errors import ClientError
from protocol.messages import Metrics, Usage
from protocol.session import ServerSession


class Mark(Enum):
    """What stands between segments."""

    FLUSH = auto()
    END = auto()


@dataclass(slots=True)
class Speech:
    """One segment on its way.

    `stream`: None if there is nothing to speak.  `total`: samples that it has at the wire's rate, None until they are
    known.  `paused`: it was held back for want of room, so its times say nothing of the machine.
    """

    text: str
    spoken: str
    stream: EngineStream | None = None
    submitted_at: float = 0.0
    total: int | None = None
    paused: bool = False


@dataclass(slots=True)
class Tally:
    """Counts and times of a context for `session.done`; times are those of the connection's clock."""

    sample_rate: int
    characters: int = 0
    tokens: int = 0
    frames: int = 0
    samples: int = 0
    timed_samples: int = 0  # those whose making was timed
    timed_s: float = 0.0
    asked_at: float | None = None  # the first segment's text was there
    first: EngineStream | None = None  # the first segment, once it is submitted
    heard_at: float | None = None  # its first audio was sent
    reasons: set[str] = field(default_factory=set)

    @property
    def reason(self) -> str:
        """`max_length` if any segment was cut short, else `idle` if the client fell silent, else `done`."""
        return next((reason for reason in ("max_length", "idle") if reason in self.reasons), "done")

    def add(self, speech: Speech, samples: int, now: float) -> None:
        """A segment was delivered whole, `samples` at the wire's rate."""
        started, finished = speech.stream.started, speech.stream.finished
        self.tokens += started.text_tokens
        self.frames += finished.codes.shape[1]
        self.reasons.add(finished.reason)
        self.samples += samples
        if not speech.paused:
            self.timed_samples += samples
            self.timed_s += now - speech.submitted_at - started.queue_s

    @property
    def queue_s(self) -> float | None:
        """How long the first segment waited in the engine; None before it was started."""
        return None if self.first is None or self.first.started is None else self.first.started.queue_s

    @property
    def first_packet_s(self) -> float | None:
        """From the first segment's text to its first audio; None before that."""
        return None if self.heard_at is None or self.asked_at is None else self.heard_at - self.asked_at

    @property
    def realtime_factor(self) -> float | None:
        """Seconds it took over seconds that it lasts; None if nothing was timed."""
        return self.timed_s * self.sample_rate / self.timed_samples if self.timed_samples else None

    def usage(self) -> Usage:
        """`usage` of session.done."""
        return Usage(self.characters, self.tokens, self.frames, round(self.samples * 1000 / self.sample_rate, 3))

    def metrics(self) -> Metrics:
        """`metrics` of session.done."""
        return Metrics(
            ttfp_ms=None if self.first_packet_s is None else round(self.first_packet_s * 1000, 3),
            rtf=None if self.realtime_factor is None else round(self.realtime_factor, 4),
            queue_ms=None if self.queue_s is None else round(self.queue_s * 1000, 3),
        )


class Item(Protocol):
    """Something to be sent.  `seconds` of audio; `ends`: how it ends the context, "" if it does not."""

    seconds: float
    ends: str

    def say(self, session: ServerSession, number: int, now: float) -> None:
        """Tell the session that it is sent."""


@dataclass(frozen=True, slots=True)
class SegmentBegins:
    """The next audio speaks this."""

    speech: Speech
    first: bool
    seconds: float = 0.0
    ends: str = ""

    def say(self, session: ServerSession, number: int, now: float) -> None:
        if self.first:
            session.audio_start(number)
        session.audio_segment(number, self.speech.text, self.speech.spoken)


@dataclass(frozen=True, slots=True)
class AudioPiece:
    """One binary message; none if an encoder keeps its samples for the next one, and `data` is empty."""

    speech: Speech
    tally: Tally
    data: bytes
    samples: int
    seconds: float
    ends: str = ""

    def say(self, session: ServerSession, number: int, now: float) -> None:
        session.audio(number, self.data, self.samples, now, self.speech.total)
        if self.data and self.tally.heard_at is None:
            self.tally.heard_at = now


@dataclass(frozen=True, slots=True)
class AudioRest:
    """What an encoder kept of samples that were counted before: the end of its stream."""

    data: bytes
    seconds: float = 0.0
    ends: str = ""

    def say(self, session: ServerSession, number: int, now: float) -> None:
        session.audio_rest(number, self.data, now)


@dataclass(frozen=True, slots=True)
class FlushPoint:
    """All audio of a flush is sent."""

    seconds: float = 0.0
    ends: str = ""

    def say(self, session: ServerSession, number: int, now: float) -> None:
        session.flushed(number)


@dataclass(frozen=True, slots=True)
class Ending:
    """All is sent."""

    tally: Tally
    seed: int
    seconds: float = 0.0
    ends: str = "done"

    def say(self, session: ServerSession, number: int, now: float) -> None:
        session.done(number, self.tally.reason, self.seed, self.tally.usage(), self.tally.metrics())


@dataclass(frozen=True, slots=True)
class Failure:
    """What was made is sent, the rest fails."""

    error: ClientError
    retry_after_ms: int
    seconds: float = 0.0
    ends: str = "failed"

    def say(self, session: ServerSession, number: int, now: float) -> None:
        retry = self.retry_after_ms if self.error.retry else None
        session.failed(number, self.error.code, self.error.message, retry)
