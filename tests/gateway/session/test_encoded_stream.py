"""Encoded formats over a real socket: what comes, joined, is a file, and the positions are right."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import floor

import numpy as np
import pytest
from decoding import decibels, decode, deviation, heard_of, tone
from scripted_engine import FRAME_SAMPLES, ScriptedEngine, frames_for

from gateway.settings import Settings
from protocol.client import SpeechContext, connect
from protocol.config import SAMPLE_RATES
from protocol.limits import Limits

TEXT = "The first one is here. The second is over there, and it is longer. The third."
KINDS = [
    ("opus", 48000),
    *(("mp3", rate) for rate in SAMPLE_RATES),
    *((name, 24000) for name in ("aac", "flac", "wav")),
]
formats = pytest.mark.parametrize("name", ["opus", "mp3", "aac"])


def endless_tone(hertz: float = 440.0) -> Callable[[int, int], np.ndarray]:
    """A waveform that goes on where the chunk before ended, whatever its segment."""
    position = 0

    def wave(_: int, count: int) -> np.ndarray:
        nonlocal position
        position += count
        return tone(position - count, count, hertz=hertz)

    return wave


def length(spoken: str, rate: float) -> int:
    return floor(frames_for(spoken) * FRAME_SAMPLES * rate / 44100 + 0.5)


@pytest.mark.parametrize(("name", "rate"), KINDS)
async def test_a_context_is_one_file_of_exact_length(run_gateway, name, rate):
    async with run_gateway(ScriptedEngine(waveform=endless_tone())) as gateway, await gateway.client() as client:
        await client.say("session.config", response_format=name, sample_rate=rate)
        await client.speak(TEXT)
        heard = await client.whole("_0")
    start, done = heard.all("audio.start")[0], heard.all("audio.done")[0]
    assert (start["format"], start["sample_rate"], start["channels"]) == (name, rate, 1)
    segments = heard.all("audio.segment")
    lengths = [length(segment["spoken"], rate) for segment in segments]
    assert len(lengths) == 3
    assert [segment["start_sample"] for segment in segments] == [0, lengths[0], lengths[0] + lengths[1]]
    assert (done["samples"], done["total_bytes"], done["error"]) == (sum(lengths), len(heard.audio), None)
    samples = heard_of(name, heard.audio, rate, sum(lengths))
    for first, count in zip([0, *np.cumsum(lengths)], lengths, strict=False):  # within each: resampling ends at borders
        inside = samples[first + rate // 10 : first + count - rate // 10]
        assert decibels(inside, deviation(inside, rate)) > 30
    assert heard.types[-3:] == ["audio", "audio.done", "session.done"]


async def test_a_tone_stays_one_tone_over_the_borders_of_segments(run_gateway):
    """At the model's own rate, where no resampler begins anew at a border: nothing at all is heard of it."""
    async with run_gateway(ScriptedEngine(waveform=endless_tone())) as gateway, await gateway.client() as client:
        await client.say("session.config", response_format="mp3")
        await client.speak(TEXT)
        heard = await client.whole("_0")
    samples = heard_of("mp3", heard.audio, 44100, heard.all("audio.done")[0]["samples"])[4410:-4410]
    noise = deviation(samples, 44100)
    assert decibels(samples, noise) > 40
    assert np.abs(noise).max() < 0.01


async def test_opus_keeps_the_phase_over_the_borders_of_segments(run_gateway):
    """Each segment is resampled by itself: the border is a matter of a few samples, the tone behind it is the same."""
    async with run_gateway(ScriptedEngine(waveform=endless_tone())) as gateway, await gateway.client() as client:
        await client.say("session.config", response_format="opus")
        await client.speak(TEXT)
        heard = await client.whole("_0")
    samples, _ = decode(heard.audio)
    borders = [segment["start_sample"] for segment in heard.all("audio.segment")[1:]]
    noise = np.abs(deviation(samples, 48000))
    near = np.zeros(len(samples), bool)
    for border in [0, *borders, len(samples)]:
        near[max(0, border - 960) : border + 960] = True
    assert noise[~near].max() < 0.03
    assert all(noise[border - 960 : border + 960].max() < 0.25 for border in borders)  # of 0.4: no jump of the phase


@pytest.mark.parametrize("speed", [0.5, 1.3])
async def test_faster_speech_is_shorter_and_has_the_same_pitch(run_gateway, speed):
    async with run_gateway(ScriptedEngine(waveform=endless_tone())) as gateway, await gateway.client() as client:
        await client.say("session.config", speed=speed, sample_rate=24000)
        await client.speak(TEXT)
        heard = await client.whole("_0")
    lengths = [length(segment["spoken"], 24000 / speed) for segment in heard.all("audio.segment")]
    assert len(heard.audio) == 2 * sum(lengths) == 2 * heard.all("audio.done")[0]["samples"]
    assert heard.end["usage"]["audio_ms"] == pytest.approx(sum(lengths) / 24, abs=1)
    samples = np.frombuffer(heard.audio, "<i2")[2400 : lengths[0] - 2400]
    pitch = np.abs(np.fft.rfft(samples * np.hanning(len(samples)))).argmax() * 24000 / len(samples)
    assert abs(pitch - 440) < 2


@formats
async def test_any_prefix_of_messages_can_be_played(gateway, name):
    async with await gateway.client() as client:
        await client.say("session.config", response_format=name)
        await client.speak(TEXT)
        chunks = (await client.whole("_0")).chunks
    lengths = [len(decode(b"".join(chunks[:count]))[0]) for count in range(1, len(chunks) + 1)]
    assert len(chunks) > 6 and all(np.diff(lengths) > 0)


@formats
async def test_audio_leaves_with_the_first_chunk(run_gateway, name):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()  # after 4 frames nothing more is made
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.say("session.config", response_format=name)
        await client.speak(TEXT)
        samples, rate = decode(await client.until_audio())
    assert 4 * FRAME_SAMPLES / 44100 - len(samples) / rate < 0.05


@formats
async def test_a_flush_brings_out_all_that_was_said(gateway, name):
    async with await gateway.client() as client:
        await client.say("session.config", response_format=name)
        await client.say("input.text", text="One")
        await client.say("input.flush", flush_id="f1")
        await client.say("input.flush", flush_id="f2")
        flushed = await client.until("input.flushed", flush_id="f2")
        heard = client.contexts["_0"]
        before = decode(heard.audio)[0]
        await client.say("input.text", text=" two")
        await client.say("input.flush")
        await client.say("input.done")
        heard = await client.whole("_0")
    rate = heard.all("audio.start")[0]["sample_rate"]
    assert len(before) >= length("One", rate)
    ends = [message["end_sample"] for message in heard.all("input.flushed")]
    assert ends[0] == ends[1] == flushed["end_sample"]
    assert 0 <= ends[0] - length("One", rate) < 0.1 * rate  # the silence that it took
    assert heard.all("audio.segment")[1]["start_sample"] == ends[1]
    assert heard.types[-4:] == ["input.flushed", "audio", "audio.done", "session.done"]
    assert heard.all("audio.done")[0]["samples"] == ends[2]
    heard_of(name, heard.audio, rate, ends[2])


@formats
async def test_a_cancel_ends_it_and_the_next_context_is_a_file_of_its_own(run_gateway, name):
    async with run_gateway(ScriptedEngine(speed=100)) as gateway, await gateway.client() as client:
        await client.say("session.config", response_format=name)
        await client.say("input.text", text=TEXT, context_id="a")
        await client.until_audio()
        await client.say("input.cancel", context_id="a")
        await client.speak("Another.", context_id="b")
        stopped, other = await client.whole("a"), await client.whole("b")
    assert stopped.types[-1] == "input.cancelled" and "audio.done" not in stopped.types
    assert stopped.end["samples_sent"] > 0
    assert stopped.end["text_spoken"] + stopped.end["text_remaining"] == TEXT
    assert len(decode(stopped.audio)[0]) > 0
    done = other.all("audio.done")[0]
    heard_of(name, other.audio, other.all("audio.start")[0]["sample_rate"], done["samples"])


@formats
@pytest.mark.parametrize("text", ["  ...", "silent"])
async def test_without_audio_nothing_is_sent(run_gateway, name, text):
    async with run_gateway(ScriptedEngine(frames=lambda text: 0)) as gateway, await gateway.client() as client:
        await client.say("session.config", response_format=name)
        await client.speak(text)
        heard = await client.whole("_0")
    assert heard.chunks == []
    assert [done["total_bytes"] for done in heard.all("audio.done")] in ([], [0])


@formats
async def test_a_failure_comes_after_what_was_made(run_gateway, name):
    text = "This text is the bad one."  # 50 frames, of which 29 come
    engine = ScriptedEngine(fail={text: (2, "engine_failed")})
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.say("session.config", response_format=name)
        await client.speak(text)
        heard = await client.whole("_0")
    assert heard.types[-3:] == ["audio", "audio.done", "error"]
    made = 29 * FRAME_SAMPLES / 44100 * heard.all("audio.start")[0]["sample_rate"]
    assert 0 <= made - heard.all("audio.done")[0]["samples"] < 2000  # a resampler keeps the rest
    assert len(decode(heard.audio)[0]) > 0


async def test_small_chunks_that_fill_no_frame_are_counted(gateway):
    """A frame of codes at 8 kHz is 371 samples, one of MP3 576: some chunks bring nothing, and no message is empty."""
    async with await gateway.client() as client:
        config = {"initial_codec_chunk_frames": 1, "codec_chunk_frames": 1}
        await client.say("session.config", response_format="mp3", sample_rate=8000, **config)
        await client.speak("Hi. Yes.")
        heard = await client.whole("_0")
    spoken = [segment["spoken"] for segment in heard.all("audio.segment")]
    assert all(heard.chunks)
    assert len(heard.chunks) < sum(map(frames_for, spoken))
    assert heard.all("audio.done")[0]["samples"] == sum(length(text, 8000) for text in spoken)


@formats
async def test_synthesis_pauses_at_the_budget(run_gateway, name):
    """The budget counts seconds of audio, not bytes."""
    engine = ScriptedEngine()
    settings = Settings(limits=Limits(unsent_audio_s=3))
    async with run_gateway(engine, settings) as gateway, await gateway.client() as client:
        await client.say("session.config", response_format=name)
        engine.hold_audio()  # of the first context: its turn does not end
        await client.speak("The first.", context_id="a")
        await engine.until(lambda: len(engine.submitted) == 1)
        engine.hold_audio().set()
        await client.say("input.text", text="This one waits for its turn. " * 20, context_id="b")
        await engine.until(lambda: any(not granted for _, granted in engine.credits))


@formats
async def test_the_client_gives_the_bytes(gateway, name):
    url = f"ws://127.0.0.1:{gateway.port}/v1/stream"
    async with asyncio.timeout(20), connect(url, response_format=name) as client:
        rate = client.config["sample_rate"]
        context = client.context()
        await context.speak(TEXT)
        chunks = [chunk async for chunk in context]
    assert {(chunk.format, chunk.sample_rate, chunk.samples) for chunk in chunks} == {(name, rate, None)}
    heard_of(name, b"".join(chunk.data for chunk in chunks), rate, context.result.samples)
    starts = sorted({chunk.start for chunk in chunks})
    assert starts == [0, *np.cumsum([length(request.text, rate) for request in gateway.engine.submitted])[:-1]]
    with pytest.raises(TypeError, match=name):
        _ = chunks[0].array
    assert sum(chunk.seconds for chunk in chunks) > 0
    check_hearing(context, rate)


def check_hearing(context: SpeechContext, rate: int) -> None:
    """What is heard of a context that has ended is known within its segments, too."""
    assert context.heard() == (TEXT, "")
    first, second = TEXT[:22], TEXT[22:]
    at = length(first, rate) / rate * 1000
    assert context.heard(at + 1) == (first, second)
    assert context.heard(at * 0.5)[0] == "The first "


@formats
async def test_the_client_can_cancel_and_flush(run_gateway, name):
    async with run_gateway(ScriptedEngine(speed=200)) as gateway:
        url = f"ws://127.0.0.1:{gateway.port}/v1/stream"
        async with asyncio.timeout(20), connect(url, response_format=name) as client:
            context = client.context()
            await context.send("Said.")
            end = await context.flush()
            assert end >= length("Said.", client.config["sample_rate"])
            await context.send(TEXT)
            async for _ in context:
                if context.heard().text_spoken == "Said.":
                    break
            stopped = await context.cancel()
    assert stopped.text_spoken.startswith("Said.") and stopped.samples_sent >= end
