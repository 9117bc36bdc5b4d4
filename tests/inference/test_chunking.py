"""Chunk policies, alone and before a simulated codec and listener."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.chunking import Chunker, Pace

FRAME_S = 2048 / 44100
IDLE = Pace()


@dataclass
class Heard:
    """What a simulated listener got: chunk sizes, and by how many seconds the worst chunk came too late."""

    sizes: list[int] = field(default_factory=list)
    late_s: float = 0.0
    dry_at: float | None = None

    def hear(self, frames: int, out_at: float) -> None:
        if self.dry_at is not None:
            self.late_s = max(self.late_s, out_at - self.dry_at)
        self.sizes.append(frames)
        self.dry_at = (out_at if self.dry_at is None else max(out_at, self.dry_at)) + frames * FRAME_S


def speak(policy: str, frames: int, step_s: float, decode_s: float, call_s: float = 0.0, wait_s: float = 0.0) -> Heard:
    """One stream, a frame every `step_s`; a serial codec, `call_s` a call and `decode_s` a frame.

    `wait_s`: what others have put before each chunk into the codec's queue, which its feedback tells.
    """
    chunker, heard = Chunker(policy, initial=4, chunk=25, frame_s=FRAME_S), Heard()
    now = codec_free = 0.0
    pending, per_frame = 0, decode_s + call_s / 8
    for made in range(1, frames + 1):
        now, pending = now + step_s, pending + 1
        waits = max(0.0, codec_free - now) + wait_s
        pace = Pace(step_s, per_frame, round(waits / per_frame))
        if size := chunker.due(pending, made == frames, now, pace):
            codec_free = now + waits + call_s + size * decode_s
            chunker.sent(size, now, pace)
            heard.hear(size, codec_free)
            pending -= size
    assert not pending
    return heard


def cut(chunker: Chunker, frames: int, pace: Pace = IDLE, step_s: float = 0.01) -> list[int]:
    """The chunk sizes of a stream of `frames`, one frame every `step_s`."""
    sizes, pending = [], 0
    for made in range(1, frames + 1):
        pending += 1
        while size := chunker.due(pending, made == frames, made * step_s, pace):
            chunker.sent(size, made * step_s, pace)
            sizes.append(size)
            pending -= size
    return sizes


chunk_limits = st.integers(1, 25).flatmap(lambda chunk: st.tuples(st.integers(1, chunk), st.just(chunk)))


@given(chunk_limits, st.integers(1, 400))
def test_fixed_is_exactly_the_initial_then_whole_chunks_then_the_rest(limits, frames):
    initial, chunk = limits
    sizes = cut(Chunker("fixed", initial, chunk, FRAME_S), frames)
    rest = max(0, frames - initial)
    expected = [min(initial, frames)] + [chunk] * (rest // chunk) + ([rest % chunk] if rest % chunk else [])
    assert sizes == expected


def test_the_published_sizes():
    assert cut(Chunker("fixed", 4, 25, FRAME_S), 60) == [4, 25, 25, 6]


paces = st.builds(Pace, st.floats(0, 0.2), st.floats(0, 0.1), st.integers(0, 200))


@given(chunk_limits, st.integers(1, 200), paces, st.floats(0, 0.2), st.none() | st.floats(-5, 5))
def test_adaptive_loses_no_frame_and_keeps_its_limits(limits, frames, pace, step_s, dry_at):
    initial, chunk = limits
    sizes = cut(Chunker("adaptive", initial, chunk, FRAME_S, dry_at), frames, pace, step_s)
    assert sum(sizes) == frames
    assert sizes[0] == min(initial, frames)
    assert all(min(2, chunk) <= size <= chunk for size in sizes[1:-1])


@given(st.integers(0, 500))
def test_whole_is_one_chunk_at_the_end(frames):
    assert cut(Chunker("whole", 4, 25, FRAME_S), frames) == ([frames] if frames else [])


@pytest.mark.parametrize("policy", ["fixed", "adaptive"])
def test_frames_that_piled_up_leave_in_chunks(policy):
    """As after a full ring or a pause."""
    chunker, sizes, pending = Chunker(policy, 4, 25, FRAME_S), [], 70
    while size := chunker.due(pending, True, 0.0, IDLE):
        chunker.sent(size, 0.0, IDLE)
        sizes.append(size)
        pending -= size
    assert sizes == [4, 25, 25, 16] and chunker.sent_frames == 70


def test_nothing_is_due_twice_or_without_frames():
    chunker = Chunker("adaptive", 4, 25, FRAME_S)
    assert chunker.due(0, True, 0.0, IDLE) == 0
    assert chunker.due(4, False, 0.0, IDLE) == 4
    assert chunker.due(4, False, 0.0, IDLE) == 4  # asking changes nothing, sending does
    chunker.sent(4, 0.0, IDLE)
    assert chunker.due(0, False, 100.0, IDLE) == 0
    assert chunker.due(1, False, 100.0, IDLE) == 0
    assert chunker.due(2, False, 100.0, IDLE) == 2


def test_a_fast_machine_gives_the_published_sizes():
    heard = speak("adaptive", 104, step_s=0.0015, decode_s=0.000112, call_s=0.0015)
    assert heard.sizes == [4, 25, 25, 25, 25] and heard.late_s == 0


def test_fixed_runs_dry_where_adaptive_does_not():
    """At 0.6 of real time 25 frames take 0.7 s, and four last for 0.19 s."""
    step_s = 0.6 * FRAME_S
    assert speak("fixed", 120, step_s, decode_s=FRAME_S / 12, call_s=0.01).late_s > 0.4
    heard = speak("adaptive", 120, step_s, decode_s=FRAME_S / 12, call_s=0.01)
    assert heard.late_s == 0
    assert heard.sizes[0] == 4 and max(heard.sizes[:3]) < 8 < max(heard.sizes)  # a ramp


@pytest.mark.parametrize("share", [0.2, 0.3, 0.4, 0.5, 0.6])
@pytest.mark.parametrize("frames", [5, 29, 120, 300])
def test_adaptive_never_runs_dry_up_to_0_6_of_real_time(share, frames):
    assert speak("adaptive", frames, share * FRAME_S, decode_s=FRAME_S / 12, call_s=0.01).late_s == 0


def test_adaptive_counts_the_codecs_queue():
    heard = speak("adaptive", 120, 0.4 * FRAME_S, decode_s=FRAME_S / 20, wait_s=0.06)
    assert heard.late_s == 0


def test_the_listeners_clock_starts_when_the_first_chunk_is_out():
    """At the earliest, as nobody shall be believed to have more than it has: others may come first in the codec."""
    chunker = Chunker("adaptive", 4, 25, FRAME_S)
    assert chunker.dry_at is None
    chunker.sent(4, 10.0, Pace(0.01, decode_s_per_frame=0.1, ahead_frames=6))
    assert chunker.dry_at == pytest.approx(10.4 + 4 * FRAME_S)
    chunker.sent(10, 10.5, IDLE)
    assert chunker.dry_at == pytest.approx(10.4 + 14 * FRAME_S)
    chunker.sent(1, 100.0, IDLE)  # long after it ran dry
    assert chunker.dry_at == pytest.approx(100.0 + FRAME_S)


def test_the_listener_of_a_later_segment_is_not_hurried():
    """It still hears the segment before for ten seconds, so chunks are full, even on a slow machine."""
    assert cut(Chunker("adaptive", 4, 25, FRAME_S, dry_at=10.0), 60, Pace(0.04), 0.04) == [4, 25, 25, 6]
