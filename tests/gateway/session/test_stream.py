"""The native endpoint over a real socket: what is spoken, in which order, in which pieces."""

from __future__ import annotations

from math import floor

import pytest
from clocks import Clock
from scripted_engine import FRAME_SAMPLES, ScriptedEngine, frames_for, ramp

from protocol.config import SAMPLE_RATES
from protocol.framing import HEADER_BYTES, AudioHeader

TEXT = "This is the first sentence of a text. Here is another one that follows it, with a clause. And the last."


def _samples(text: str) -> int:
    return frames_for(text) * FRAME_SAMPLES


async def test_a_text_is_spoken_whole_and_in_order(gateway):
    async with await gateway.client() as client:
        for word in TEXT.split(" "):
            await client.say("input.text", text=word if word == "This" else " " + word)
        await client.say("input.done")
        heard = await client.whole("_0")
    assert heard.types[:3] == ["audio.start", "audio.segment", "audio"]
    assert heard.types[-3:] == ["audio", "audio.done", "session.done"]
    assert heard.text == TEXT
    expected = b"".join(
        (ramp(0, _samples(s["spoken"])) * 32767).round().astype("<i2").tobytes() for s in heard.all("audio.segment")
    )
    assert heard.audio == expected
    done = heard.all("audio.done")[0]
    assert (done["total_bytes"], done["samples"], done["error"]) == (len(expected), len(expected) // 2, None)
    assert heard.end["reason"] == "done" and heard.end["seed"] == 42
    assert heard.end["usage"]["input_characters"] == len(TEXT)
    assert heard.end["usage"]["audio_frames"] * FRAME_SAMPLES == done["samples"]


async def test_at_the_native_rate_each_message_is_one_codec_chunk(gateway):
    async with await gateway.client() as client:
        await client.speak("Twenty nine frames and more")
        heard = await client.whole("_0")
    sizes = [len(chunk) // 2 // FRAME_SAMPLES for chunk in heard.chunks]
    total = frames_for("Twenty nine frames and more")
    assert sizes == [4, 25, total - 29]


async def test_chunk_sizes_can_be_asked_for(gateway):
    async with await gateway.client() as client:
        await client.say("session.config", initial_codec_chunk_frames=2, codec_chunk_frames=10)
        await client.speak("Twelve chars")
        heard = await client.whole("_0")
    assert [len(chunk) // 2 // FRAME_SAMPLES for chunk in heard.chunks] == [2, 10, 10, 2]


@pytest.mark.parametrize(("name", "width"), [("pcm", 2), ("f32", 4), ("mulaw", 1), ("alaw", 1)])
@pytest.mark.parametrize("rate", SAMPLE_RATES)
async def test_formats_and_rates_give_exact_lengths(gateway, name, width, rate):
    async with await gateway.client() as client:
        await client.say("session.config", response_format=name, sample_rate=rate)
        await client.speak("The first one is here. The second is over there.")
        heard = await client.whole("_0")
    start, done = heard.all("audio.start")[0], heard.all("audio.done")[0]
    assert (start["format"], start["sample_rate"], start["channels"]) == (name, rate, 1)
    lengths = [floor(_samples(s["spoken"]) * rate / 44100 + 0.5) for s in heard.all("audio.segment")]
    assert len(lengths) == 2
    assert [s["start_sample"] for s in heard.all("audio.segment")] == [0, lengths[0]]
    assert done["samples"] == sum(lengths) and len(heard.audio) == done["total_bytes"] == width * sum(lengths)
    assert all(chunk and len(chunk) % width == 0 for chunk in heard.chunks)


async def test_headers_tell_every_position(gateway):
    async with await gateway.client() as client:
        await client.say("session.config", framing="header")
        for _ in range(2):
            await client.speak(TEXT)
        contexts = [await client.whole("_0"), await client.whole("_1")]
    for number, heard in enumerate(contexts):
        position = 0
        for sequence, chunk in enumerate(heard.chunks):
            samples = (len(chunk) - HEADER_BYTES) // 2
            assert AudioHeader.unpack(chunk) == AudioHeader(number, sequence, samples, position)
            position += samples
        assert position == heard.all("audio.done")[0]["samples"]


async def test_contexts_follow_one_another(gateway):
    names = ["a", "b", "c", "d"]
    async with await gateway.client() as client:
        for name in names:
            await client.speak(f"Context {name} speaks.", context_id=name)
        heard = [await client.whole(name) for name in names]
    for number, context in enumerate(heard):
        assert context.types == [
            "audio.start",
            "audio.segment",
            "audio",
            "audio",
            "audio",
            "audio.done",
            "session.done",
        ]
        assert context.end["utterance_index"] == number


async def test_contexts_do_not_interleave(gateway):
    order = []
    async with await gateway.client() as client:
        for name in ("a", "b", "c"):
            await client.speak(TEXT, context_id=name)
        while not client.is_over("c"):
            message = await client.receive()
            if isinstance(message, dict) and message["type"] in ("audio.start", "session.done"):
                order.append((message["type"], message["context_id"]))
    assert order == [(kind, name) for name in "abc" for kind in ("audio.start", "session.done")]


async def test_flushes_are_answered_after_their_audio(gateway):
    async with await gateway.client() as client:
        await client.say("input.text", text="One")
        await client.say("input.flush", flush_id="f1")
        await client.say("input.flush")
        await client.say("input.text", text=" two")
        await client.say("input.flush", flush_id="f3")
        await client.say("input.done")
        heard = await client.whole("_0")
    assert heard.types == [
        *("audio.start", "audio.segment", "audio", "audio", "input.flushed", "input.flushed"),
        *("audio.segment", "audio", "audio", "input.flushed", "audio.done", "session.done"),
    ]
    ends = [(message["flush_id"], message["end_sample"]) for message in heard.all("input.flushed")]
    assert ends == [("f1", _samples("One")), (None, _samples("One")), ("f3", _samples("One") + _samples("two"))]


async def test_audio_comes_while_the_text_still_does(run_gateway):
    """20 characters a second without an end: the first clause is heard before the third one is sent."""
    clock = Clock()
    text = "Here is the first clause of it, then there is a second clause, and then the third one comes. "
    async with run_gateway(ScriptedEngine(), clock=clock) as gateway, await gateway.client() as client:
        third = text.index("and then")
        for character in text[:third]:
            clock.now += 0.05
            await client.say("input.text", text=character)
            await client.pong()
        assert client.contexts["_0"].chunks


async def test_the_buffer_delay_releases_words(run_gateway):
    async with run_gateway(ScriptedEngine()) as gateway, await gateway.client() as client:
        await client.say("session.config", max_buffer_delay_ms=1)
        await client.say("input.text", text="these words have no end ye")
        await client.until("audio.segment")
        await client.say("input.done")
        heard = await client.whole("_0")
    assert [segment["spoken"] for segment in heard.all("audio.segment")] == ["these words have no end", "ye"]


async def test_the_next_segment_is_asked_for_before_the_last_was_sent(run_gateway):
    """Stage 0 has made the first segment; its audio is held back, and the second is submitted all the same."""
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        hold = engine.hold_audio()
        await client.speak("The first sentence is here. The second sentence is there.")
        await engine.until(lambda: len(engine.submitted) == 2)
        hold.set()
        heard = await client.whole("_0")
    assert [request.segment_index for request in engine.submitted] == [0, 1]
    assert len(heard.audio) == 2 * sum(_samples(request.text) for request in engine.submitted)


async def test_without_a_voice_the_first_segment_is_the_reference(run_gateway):
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.speak(TEXT, voice=None)
        await client.whole("_0")
    first, *later = engine.submitted
    assert first.voice is None and first.reference is None and later
    for request in later:
        assert request.voice is None
        assert request.reference.text == first.text
        assert request.reference.codes.shape == (10, frames_for(first.text))
        assert (request.reference.codes == first.stream_id).all()


async def test_a_named_voice_stays_over_all_segments(run_gateway):
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.speak(TEXT)
        await client.speak(TEXT, context_id="b", voice="bo", seed=7)
        await client.whole("b")
    spoken = sorted((request.voice, request.sampling.seed, request.segment_index) for request in engine.submitted)
    assert spoken == [*(("ada", 42, index) for index in range(3)), *(("bo", 7, index) for index in range(3))]


async def test_a_drawn_seed_is_told_and_kept(run_gateway):
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.say("session.config", seed=None)
        await client.speak(TEXT)
        await client.speak(TEXT)
        seeds = [(await client.whole(name)).end["seed"] for name in ("_0", "_1")]
    assert seeds[0] != seeds[1]
    assert {request.sampling.seed for request in engine.submitted} == set(seeds)


async def test_a_segment_at_the_frame_limit_is_told(gateway):
    async with await gateway.client() as client:
        await client.say("session.config", max_new_tokens=5)
        await client.speak("A sentence that is long. And a second one.")
        heard = await client.whole("_0")
    assert heard.end["reason"] == "max_length"
    assert heard.all("audio.done")[0]["samples"] == 2 * 5 * FRAME_SAMPLES


async def test_the_listener_is_known_to_be_dry_or_not(run_gateway):
    """`dry_at`: None for silence; later what was sent and what waits, played from the first audio on."""
    clock = Clock()
    engine = ScriptedEngine()
    async with run_gateway(engine, clock=clock) as gateway, await gateway.client() as client:
        await client.say("input.text", text="One")
        await client.say("input.flush")
        await client.until("input.flushed")
        seconds = _samples("One") / 44100
        await client.say("input.text", text="Two")
        await client.say("input.flush")
        await client.until("input.flushed")
        clock.now += 2 * seconds + 1
        await client.speak("Three")
        await client.whole("_0")
    first, second, third = (request.dry_at for request in engine.submitted)
    assert first is None and third is None
    assert second == pytest.approx(clock.start + seconds)


async def test_a_context_behind_another_is_less_urgent(run_gateway):
    clock = Clock()
    engine = ScriptedEngine()
    async with run_gateway(engine, clock=clock) as gateway, await gateway.client() as client:
        held = engine.hold_audio()
        await client.speak("The one in front is forty letters long.", context_id="a")
        await client.speak("The one behind it.", context_id="b")
        await engine.until(lambda: len(engine.submitted) == 2)
        held.set()
        await client.whole("b")
    front, behind = (request.dry_at for request in engine.submitted)
    assert front is None and behind > clock.start + 1


async def test_a_model_that_says_nothing_ends_the_context_all_the_same(run_gateway):
    async with run_gateway(ScriptedEngine(frames=lambda text: 0)) as gateway, await gateway.client() as client:
        await client.speak("Nothing.")
        heard = await client.whole("_0")
    assert heard.types == ["audio.start", "audio.segment", "audio.done", "session.done"]
    assert heard.text == "Nothing." and heard.end["metrics"]["rtf"] is None
