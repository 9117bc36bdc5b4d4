"""The embedded voice through the whole gateway: what is heard is what was asked for, and a recogniser understands it.

Words are sent one message each.  The codes of each segment equal those sampled offline for the same text, seed and
segment index; the samples equal one decode of the whole to one 16-bit step.
"""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import numpy as np
import pytest
from embedded import STEP, samples, serving, speak
from recogniser import recogniser, transcript, word_errors
from scraped import Series, scrape
from stream_client import Heard, StreamClient

from gateway.bench.listener import Utterance, listen
from gateway.bench.load import Load, Pace
from gateway.bench.player import UNDERRUN_S, Released
from gateway.bench.prompts import read_lines, texts
from gateway.engine.stream import EngineStream
from inference.checkpoint import EMBEDDED, Checkpoint
from protocol.client import connect

HELDOUT = Path(__file__).parents[2] / "inference" / "training" / "data" / "heldout.txt"
RATE, FRAME = 44100, 2048
GOOD_WER = 0.08
VOICES = ("aria", "clara", "juno", "milo")


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    return recogniser(tmp_path_factory.mktemp("whisper"))


def check_against_offline(streams: list[EngineStream], heard: list[Heard], offline) -> None:
    """Codes of each segment exactly, samples of each context to one 16-bit step."""
    for index, of_context in itertools.groupby(
        sorted(streams, key=lambda s: (s.request.sampling.seed, s.request.segment_index)),
        key=lambda s: s.request.sampling.seed,
    ):
        whole = []
        for stream in of_context:
            codes = offline.codes(stream.request)
            np.testing.assert_array_equal(stream.finished.codes, codes)
            whole.append(offline.whole(codes))
        np.testing.assert_allclose(samples(heard[index]), np.concatenate(whole), atol=1.01 * STEP)


def sentences() -> list[str]:
    return read_lines(HELDOUT)


async def test_three_sentences_are_understood(offline, judge):
    texts = [(text, voice) for text, voice in zip(sentences()[:3], ("aria", "milo", None), strict=True)]
    heard, streams = await speak(texts)
    check_against_offline(streams, heard, offline)
    for (text, _), audio in zip(texts, heard, strict=True):
        assert audio.end["reason"] == "done" and audio.text.strip() == text
        assert 0.5 < len(samples(audio)) / RATE < 8
    assert word_errors([text for text, _ in texts], [transcript(judge, samples(a), RATE) for a in heard]) <= 0.15


@pytest.mark.slow
async def test_the_held_out_sentences_are_understood(offline, judge):
    texts = [(text, VOICES[index % len(VOICES)]) for index, text in enumerate(sentences())]
    heard, streams = await speak(texts)
    check_against_offline(streams, heard, offline)
    wer = word_errors([text for text, _ in texts], [transcript(judge, samples(audio), RATE) for audio in heard])
    print(f"word error rate over the socket, {len(texts)} sentences: {100 * wer:.2f} %")
    assert wer <= GOOD_WER


def told(series: Series) -> tuple[float, float]:
    """Frames that stage 0 and stage 1 have made."""
    return series["audio8_ar_frames_total"][""], series["audio8_codec_frames_total"][""]


async def test_metrics_agree_with_what_clients_were_told():
    async with serving() as (port, engine):
        async with await StreamClient.open(port) as client:
            for name, text in (("a", "It is warm today."), ("b", "And tomorrow?")):
                await client.speak(text, context_id=name)
            heard = [await client.whole(name) for name in ("a", "b")]
        frames = sum(audio.end["usage"]["audio_frames"] for audio in heard)
        async with asyncio.timeout(10):  # stages tell their last work when they become idle
            while told(series := await scrape(port)) != (frames, frames):
                await asyncio.sleep(0.05)
    assert series["audio8_audio_sent_seconds_total"][""] == pytest.approx(frames * FRAME / RATE)
    assert series["audio8_contexts_ended_total"]["done"] == series["audio8_queue_wait_seconds_count"][""] == 2
    assert series["audio8_ar_prefill_seconds_count"][""] == len(engine.streams)
    assert series["audio8_ar_step_rows_sum"][""] >= frames + len(engine.streams)  # and a step that finds the end
    assert 0 < series["audio8_ar_step_seconds_sum"][""] < 60 and series["audio8_codec_decode_seconds_sum"][""] > 0
    assert series["audio8_stream_slack_seconds_count"][""] > 0
    assert series["audio8_listeners"][""] <= 1 < series["audio8_listeners_capacity"][""]
    assert series["audio8_kv_slots"][""] >= 4 and series["audio8_kv_slots_used"][""] == 0
    assert series["audio8_streams"] == {"waiting": 0, "resident": 0, "paused": 0}


async def test_speech_begins_while_text_is_still_typed():
    text = "When the rain had stopped, we went for a walk, and the streets were still wet, but nobody minded that. "
    third_clause = text.index("and")
    async with serving() as (port, _), connect(f"ws://127.0.0.1:{port}/v1/stream") as client:
        player = (await listen(client, text, characters_per_s=20)).player
    assert player.chunks[0].arrival < player.typed_at(third_clause)
    assert "".join(spoken for spoken, _ in player.segments) == text and len(player.segments) >= 2


@pytest.mark.slow
async def test_four_listeners_never_run_dry():
    """On two cores with nothing else running; the figures stand in tests/bench/README.md."""
    heard: list[Utterance] = []
    waiting = texts(sentences(), count=12, words=60, seed=5)
    async with (
        serving() as (port, _),
        Load(lambda: connect(f"ws://127.0.0.1:{port}/v1/stream"), Pace(4, characters_per_s=20)) as load,
    ):
        await load.speak(waiting, 0, heard.append)
    assert [utterance.code for utterance in heard] == [None] * 12
    assert max(utterance.player.dry_s(Released.ANNOUNCED) for utterance in heard) <= UNDERRUN_S
    first = sorted(utterance.player.first_packet_s for utterance in heard)
    assert first[len(first) // 2] <= 0.9


def test_the_voice_is_whole():
    checkpoint = Checkpoint.open(None)
    voices = checkpoint.voices()
    assert next(iter(voices)) == "aria" and sorted(voices) == sorted(VOICES)
    for voice in voices.values():
        assert 3 <= voice.reference.codes.shape[1] * FRAME / RATE <= 4.5
    assert sum(file.stat().st_size for file in EMBEDDED.rglob("*") if file.is_file()) <= 45e6
