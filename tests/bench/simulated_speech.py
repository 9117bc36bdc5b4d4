"""What is spoken and heard in a simulation: utterances of listeners, and their segments in stage 0."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.session.outbox import Playback
from inference.chunking import Chunker

FRAME_S = 2048 / 44100


@dataclass(eq=False)
class Utterance:
    """What one listener asks for: segments of so many frames.  Times are seconds."""

    listener: int
    segments: list[int]
    asked: float
    playback: Playback = field(default_factory=Playback)
    first: float | None = None
    dry: float = 0.0
    end: float = 0.0  # when all that came has been played
    heard: list[tuple[float, float]] = field(default_factory=list)  # (time, seconds that came)

    def hear(self, seconds: float, now: float) -> None:
        """Audio has arrived."""
        if not seconds:
            return
        if self.first is None:
            self.first = self.end = now
        self.dry += max(0.0, now - self.end)
        self.end = max(self.end, now) + seconds
        self.playback.sent(seconds, now)
        self.heard.append((now, seconds))

    def buffer(self, now: float) -> float:
        """Seconds that it still has to play, for the plot."""
        end = 0.0
        for at, seconds in self.heard:
            if at <= now:
                end = max(end, at) + seconds
        return max(0.0, end - now)


@dataclass(eq=False)
class Speech:
    """One segment in stage 0, as `scheduler.Schedulable`."""

    stream_id: int
    utterance: Utterance
    index: int
    columns: int
    chunker: Chunker
    made: int = 0
    credit: bool = True

    @property
    def listener(self) -> int:
        return self.utterance.listener

    @property
    def frames(self) -> int:
        return self.utterance.segments[self.index]

    @property
    def pending(self) -> int:
        return self.made - self.chunker.sent_frames

    def slack(self, now: float) -> float | None:
        dry_at = self.chunker.dry_at
        return None if dry_at is None else dry_at - now + self.pending * FRAME_S
