"""A long text is spoken whole: in order, in one voice, at one level, and at no more cost than a short one.

Its sentences are numbered, so that none can be left out, said twice or out of turn without being noticed.  Its audio is
taken as fast as it is made; what a player would hear who began with its first chunk is reckoned from the times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import jiwer
import numpy as np
import pytest
from embedded import STEP, HeardEngine, serving
from num2words import num2words
from recogniser import plain_words, recogniser, transcript
from scripted_gateway import scripted_gateway
from stream_client import StreamClient
from voice_measures import level, pitch

from gateway.bench.player import UNDERRUN_S, Player
from gateway.bench.prompts import read_lines
from protocol.client import Client, ContextResult, connect

HELDOUT = Path(__file__).parents[2] / "inference" / "training" / "data" / "heldout.txt"
RATE, FRAME = 44100, 2048
LONGEST_S = 28  # of a piece for the recogniser, which hears half a minute at a time
GOOD_WER = 0.08
MOST_IN_A_ROW = 3  # words that are not understood: more than that were not said
SIZES = [pytest.param(60, id="60 words"), pytest.param(1200, id="1200 words", marks=pytest.mark.slow)]


def numbered(words: int) -> str:
    """A text of about so many words."""
    lines, made, count = read_lines(HELDOUT), [], 0
    while count < words:
        made.append(f"Number {num2words(len(made) + 1)}: {lines[len(made) % len(lines)]}")
        count += len(made[-1].split())
    return " ".join(made)


@dataclass(frozen=True)
class Segment:
    """What the model was given, and what it said: float32 [n] at RATE."""

    spoken: str
    samples: np.ndarray


@dataclass(frozen=True)
class Speech:
    """A context to its end."""

    player: Player
    segments: list[Segment]
    result: ContextResult

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.player.segments)


async def speak(client: Client, text: str, engine: HeardEngine) -> Speech:
    """The whole text at once."""
    player, context, audio, before = Player(text, RATE), client.context(), [], len(engine.streams)
    player.typed(time.monotonic(), 0)
    async for chunk in context.say(text):
        player.done_at = player.done_at or time.monotonic()
        player.heard(time.monotonic(), chunk.start, chunk.samples)
        audio.append(chunk.array)
    player.segments = list(context.segments)
    starts = [start for _, start in player.segments]
    parts = np.split(np.concatenate(audio).astype(np.float32) * STEP, starts[1:])
    given = [stream.request.text for stream in engine.streams[before:]]
    return Speech(player, [Segment(*both) for both in zip(given, parts, strict=True)], context.result)


def joined(segments: list[Segment], ends: Callable[[Segment, Segment], bool]) -> Iterator[Segment]:
    """Segments joined to larger ones; `ends(before, next)`: whether one of them ends between the two."""
    whole = segments[0]
    for segment in segments[1:]:
        if ends(whole, segment):
            yield whole
            whole = segment
        else:
            both = np.concatenate((whole.samples, segment.samples))
            whole = Segment(f"{whole.spoken} {segment.spoken}", both)
    yield whole


def sentences(segments: list[Segment]) -> list[Segment]:
    """Whole ones: a clause of two words by itself has no pitch that could be compared."""
    return list(joined(segments, lambda before, _: before.spoken.endswith((".", "?"))))


def pieces(segments: list[Segment]) -> Iterator[Segment]:
    """As much as the recogniser hears at once."""
    return joined(segments, lambda before, after: len(before.samples) + len(after.samples) > LONGEST_S * RATE)


def longest_lapse(said: str, understood: str) -> int:
    """The most words in a row that are missing in one of the two, where the rest agrees best."""
    (chunks,) = jiwer.process_words([said], [understood]).alignments
    lengths = {"delete": lambda c: c.ref_end_idx - c.ref_start_idx, "insert": lambda c: c.hyp_end_idx - c.hyp_start_idx}
    return max((lengths[chunk.type](chunk) for chunk in chunks if chunk.type in lengths), default=0)


@pytest.mark.parametrize("words", SIZES)
async def test_a_long_text_is_spoken_whole_in_order_in_one_voice_and_at_one_level(words, tmp_path_factory):
    text = numbered(words)
    async with serving() as (port, engine), connect(f"ws://127.0.0.1:{port}/v1/stream", seed=7) as client:
        short = await speak(client, text[:60], engine)
        long = await speak(client, text, engine)
        streams = engine.streams[len(short.segments) :]
    assert long.result.reason == "done" and long.text == text
    assert [stream.finished.reason for stream in streams] == ["done"] * len(streams)
    frames = [stream.finished.codes.shape[1] for stream in streams]
    assert [len(segment.samples) for segment in long.segments] == [FRAME * count for count in frames]

    judge = recogniser(tmp_path_factory.mktemp("whisper"))
    said, understood = [], []
    for piece in pieces(long.segments):
        said.append(plain_words(piece.spoken))
        understood.append(plain_words(transcript(judge, piece.samples, RATE)))
        assert longest_lapse(said[-1], understood[-1]) <= MOST_IN_A_ROW, (said[-1], understood[-1])
    wer = jiwer.wer(said, understood)
    pitches = np.array([pitch(sentence.samples, RATE) for sentence in sentences(long.segments)])
    levels = np.array([level(sentence.samples) for sentence in sentences(long.segments)])
    pitches, levels = pitches / np.median(pitches) - 1, levels - np.median(levels)
    first = [1000 * each.player.first_packet_s for each in (short, long)]
    print(
        f"{len(text.split())} words, {len(streams)} segments, {long.player.audio_s:.0f} s: word error rate "
        f"{100 * wer:.2f} %, pitch {100 * pitches.min():+.1f} … {100 * pitches.max():+.1f} %, "
        f"level {levels.min():+.1f} … {levels.max():+.1f} dB, first packet {first[1]:.0f} ms (of a short text "
        f"{first[0]:.0f} ms), dry for {1000 * long.player.dry_s():.0f} ms, {long.result.metrics}"
    )
    assert wer <= GOOD_WER
    assert np.abs(pitches).max() <= 0.1
    assert np.abs(levels).max() <= 2.0
    if words > 1000:  # on two cores with nothing else running; a short text gives such figures no weight
        assert long.player.dry_s() <= UNDERRUN_S
        assert first[1] < 2 * first[0] + 50


async def test_what_a_text_costs_in_memory_does_not_grow_with_its_length(tmp_path):
    """The audio of the longer one is 60 MB."""
    with scripted_gateway(tmp_path / "log") as gateway:
        peaks = []
        for words in (100, 200, 1200):
            gateway.forget_peak()
            async with await StreamClient.open(gateway.port) as client:
                await client.speak(numbered(words))
                await client.until("session.done")
            peaks.append(gateway.peak)
    assert peaks[-1] - peaks[0] < 10e6, peaks
