"""Deepgram's own package, its synchronous and asynchronous clients, against `/v1/speak` and `/v2/speak`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from client_runs import Told
from decoding import decode
from scraped import scrape
from tones import HIGH, LOW, ToneEngine, pitches, seconds

from gateway.keys import ApiKeys
from gateway.settings import Settings
from protocol.limits import Limits

FRAMES = 215  # 10 s
LONG = "This is a low tone that goes on for quite some time. " * 12
RATE = 24000
SENTENCE = "The quick brown fox jumps over the lazy dog."
HEARD = "brown fox jumps over the lazy dog"
TURNS = ["A low one.", "And a high one."]


@pytest.fixture
async def sdk(talk):
    async def run(case: str, **arguments: object) -> Told:
        return await talk("deepgram", "deepgram_sdk.py", case, **arguments)

    return run


def kinds(told: Told) -> list[str]:
    """Of its messages, in order."""
    return [message["type"] for message in told["messages"]]


def tones(told: Told, turn: int, rate: int = RATE) -> set[float]:
    """What is heard in a turn."""
    return set(pitches(told.pcm(f"{turn}.pcm"), rate))


# The first protocol -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["aura", "aura_async"])
async def test_two_turns_on_one_connection(sdk, run_gateway, case):
    async with run_gateway(ToneEngine(frames=lambda text: 20)) as gateway:
        told = await sdk(case, url=gateway.url, texts=TURNS, model="bo")
        assert {request.voice for request in gateway.engine.submitted} == {"bo"}
        assert (await scrape(gateway.port))["audio8_connections_opened_total"] == {"": 1}
    assert kinds(told) == ["Metadata", "Flushed", "Flushed"]
    assert (tones(told, 0), tones(told, 1)) == ({LOW}, {HIGH})
    assert len(told.pcm("1.pcm")) == round(seconds(20) * RATE)


@pytest.mark.parametrize("rate", [8000, 16000, 24000, 32000, 48000])
async def test_a_tone_keeps_its_pitch_and_length(sdk, run_gateway, rate):
    async with run_gateway(ToneEngine(frames=lambda text: FRAMES)) as gateway:
        told = await sdk("aura", url=gateway.url, texts=["A tone."], encoding="linear16", sample_rate=rate)
    assert len(told.pcm("0.pcm")) == round(seconds(FRAMES) * rate)
    assert tones(told, 0, rate) == {LOW}


async def test_telephones_get_their_encoding(sdk, run_gateway):
    async with run_gateway(ToneEngine(frames=lambda text: FRAMES)) as gateway:
        told = await sdk("aura", url=gateway.url, texts=["A tone."], encoding="mulaw", sample_rate=8000)
    assert (told.folder / "0.pcm").stat().st_size == round(seconds(FRAMES) * 8000)


async def test_nothing_stale_is_heard_behind_a_clear(sdk, run_gateway):
    engine = ToneEngine(speed=100)
    async with run_gateway(engine) as gateway:
        told = await sdk("aura_barge_in", url=gateway.url, first=LONG, second="A high one.")
        assert engine.cancelled and not engine.live
    assert kinds(told) == ["Cleared", "Flushed"]
    assert tones(told, 0) == {LOW} and tones(told, 1) == {HIGH}
    assert len(told.pcm("0.pcm")) / RATE < 20


async def test_a_connection_may_be_idle(sdk, run_gateway):
    settings = Settings(limits=replace(Limits(), idle_s=0.5))
    async with run_gateway(ToneEngine(frames=lambda text: 20), settings) as gateway:
        told = await sdk("aura", url=gateway.url, texts=TURNS, pause_s=2)
    assert kinds(told) == ["Metadata", "Flushed", "Flushed"] and tones(told, 1) == {HIGH}


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_connection_outlives_the_keep_alive_of_the_client(sdk, run_gateway):
    """Which pings after 20 s, and gives up 20 s later."""
    async with run_gateway(ToneEngine(frames=lambda text: 20)) as gateway:
        told = await sdk("aura", url=gateway.url, texts=TURNS, pause_s=45)
    assert kinds(told) == ["Metadata", "Flushed", "Flushed"] and tones(told, 1) == {HIGH}


async def test_what_is_wrong_is_told_to_the_callbacks(sdk, run_gateway):
    async with run_gateway(ToneEngine()) as gateway:
        told = await sdk("aura_events", url=gateway.url, raw='{"type": "Shout"}')
    names = [name for name, _ in told["events"]]
    assert names == ["open", "message", "message", "error", "close"]
    assert "DATA-0000" in told["events"][2][1] and "known types: Speak, Flush" in told["events"][2][1]
    assert "1008" in told["events"][3][1]


async def test_a_failure_is_told_to_the_callbacks(sdk, run_gateway):
    async with run_gateway(ToneEngine(fail={"It fails.": (0, "engine_failed")})) as gateway:
        told = await sdk("aura_events", url=gateway.url, raw='{"type": "Speak", "text": "It fails. "}')
    assert [name for name, _ in told["events"]] == ["open", "message", "message", "error", "close"]
    assert "engine_failed" in told["events"][2][1] and "1011" in told["events"][3][1]


async def test_a_refusal_tells_why(sdk, run_gateway):
    async with run_gateway(ToneEngine(), Settings(keys=ApiKeys({"phone": "a-key"}))) as gateway:
        unknown = await sdk("refused", url=gateway.url, key="other")
        wrong = await sdk("refused", url=gateway.url, model="nobody")
    assert unknown["status"] == 401 and unknown["body"]["err_code"] == "INVALID_AUTH"
    assert wrong["status"] == 400 and "ada, bo" in wrong["body"]["err_msg"]


async def test_a_recogniser_understands_it(sdk, voice_url, understood):
    told = await sdk("aura_async", url=voice_url, texts=[SENTENCE])
    assert HEARD in understood(told.pcm("0.pcm"), RATE)


# The second protocol ------------------------------------------------------------------------------------------------


async def test_two_turns_of_the_second_protocol(sdk, run_gateway):
    async with run_gateway(ToneEngine(frames=lambda text: 20)) as gateway:
        told = await sdk("flux", url=gateway.url, texts=TURNS, speeds=[1.0, 0.5], model="bo", sample_rate=44100)
    turn = ["ConfigureSuccess", "SpeechStarted", "Flushed", "SpeechMetadata"]
    assert kinds(told) == ["Connected", *turn, *turn, "SessionMetadata"]
    ends = [message for message in told["messages"] if message["type"] == "SpeechMetadata"]
    assert [end["input_character_count"] for end in ends] == [len(text) for text in TURNS]
    assert tones(told, 0, 44100) == {LOW} and HIGH in tones(told, 1, 44100)
    lengths = [len(told.pcm(f"{turn}.pcm")) / 44100 for turn in (0, 1)]
    assert lengths == pytest.approx([seconds(20), 2 * seconds(20)], abs=0.1)
    assert [end["audio_duration_ms"] for end in ends] == pytest.approx([1000 * each for each in lengths], abs=1)


@pytest.mark.parametrize("offset_ms", [None, 100])
async def test_nothing_stale_is_heard_behind_an_interrupt(sdk, run_gateway, offset_ms):
    engine = ToneEngine(speed=100)
    async with run_gateway(engine) as gateway:
        told = await sdk(
            "flux_barge_in", url=gateway.url, first=LONG, second="A high one.", offset_ms=offset_ms, model="ada"
        )
        assert engine.cancelled and not engine.live
    assert kinds(told)[-5:] == ["SpeechInterrupted", "SpeechStarted", "Flushed", "SpeechMetadata", "SessionMetadata"]
    assert tones(told, 0) == {LOW} and tones(told, 1) == {HIGH}
    (interrupted,) = [message for message in told["messages"] if message["type"] == "SpeechInterrupted"]
    if offset_ms is None:
        played = round(len(told.pcm("0.pcm")) * 1000 / RATE)
        assert interrupted["audio_played_ms"] == pytest.approx(played, abs=1)
        assert "text_spoken" not in interrupted
    else:
        assert interrupted["audio_played_ms"] == offset_ms
        assert interrupted["text_spoken"] + interrupted["text_remaining"] == LONG


async def test_a_recogniser_understands_the_second_protocol(sdk, voice_url, understood):
    told = await sdk("flux", url=voice_url, texts=[SENTENCE], model="aria")
    assert HEARD in understood(told.pcm("0.pcm"), RATE)


# Requests -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "options"), [("rest", {"version": 2, "model": "ada"}), ("rest_async", {})])
async def test_a_request_is_answered_by_a_file(sdk, run_gateway, case, options):
    async with run_gateway(ToneEngine(frames=lambda text: FRAMES)) as gateway:
        told = await sdk(case, url=gateway.url, text="A tone.", **options)
    samples, rate = decode((told.folder / "0.pcm").read_bytes())
    assert rate == 22050 and abs(len(samples) / rate - seconds(FRAMES)) < 0.15
    assert set(pitches((samples * 32767).astype(np.int16), rate)[1:-1]) == {LOW}


async def test_a_request_that_is_refused_is_an_api_error(sdk, run_gateway):
    async with run_gateway(ToneEngine()) as gateway:
        told = await sdk("rest", url=gateway.url, text="Hello.", model="nobody")
    assert told["status"] == 400 and told["body"]["err_code"] == "INVALID_QUERY_PARAMETER"
    assert "ada, bo" in told["body"]["err_msg"]
