"""OpenAI's own package, its synchronous and asynchronous clients, against `/v1/audio/speech`."""

from __future__ import annotations

import base64

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
PCM = {"voice": "bo", "response_format": "pcm"}


@pytest.fixture
async def sdk(talk):
    async def run(case: str, **arguments: object) -> Told:
        return await talk("openai", "openai_sdk.py", case, **arguments)

    return run


def ten_seconds() -> ToneEngine:
    return ToneEngine(frames=lambda text: FRAMES)


@pytest.mark.parametrize("case", ["turns", "turns_async"])
async def test_two_turns_on_one_connection(sdk, run_gateway, case):
    async with run_gateway(ToneEngine(frames=lambda text: 20)) as gateway:
        told = await sdk(case, url=gateway.url, texts=TURNS, **PCM)
        assert {request.voice for request in gateway.engine.submitted} == {"bo"}
        assert (await scrape(gateway.port))["audio8_contexts_ended_total"]["done"] == 2
    assert told["types"] == ["audio/pcm"] * 2 and len(set(told["peers"])) == 1
    for turn, tone in enumerate((LOW, HIGH)):
        samples = told.pcm(f"{turn}.audio")
        assert len(samples) == round(seconds(20) * RATE) and set(pitches(samples, RATE)) == {tone}


@pytest.mark.parametrize("case", ["streamed", "streamed_async", "events"])
async def test_a_tone_keeps_its_pitch_and_length(sdk, run_gateway, case):
    async with run_gateway(ten_seconds()) as gateway:
        told = await sdk(case, url=gateway.url, text="A tone.", **PCM)
    samples = told.pcm("0.audio")
    assert len(samples) == round(seconds(FRAMES) * RATE) and set(pitches(samples, RATE)) == {LOW}
    if case == "events":
        assert set(told["kinds"][:-1]) == {"speech.audio.delta"} and told["kinds"][-1] == "speech.audio.done"
        assert told["usage"]["output_tokens"] == FRAMES
    else:
        assert told["pieces"] > 1


@pytest.mark.parametrize("response_format", [None, "mp3", "opus", "aac", "flac", "wav"])
async def test_each_format_is_a_file(sdk, run_gateway, response_format):
    chosen = {"response_format": response_format} if response_format else {}
    async with run_gateway(ten_seconds()) as gateway:
        told = await sdk("turns", url=gateway.url, texts=["A tone."], voice="ada", **chosen)
    samples, rate = decode((told.folder / "0.audio").read_bytes())
    assert rate == (48000 if response_format == "opus" else RATE)
    assert abs(len(samples) / rate - seconds(FRAMES)) < 0.15
    assert set(pitches((samples * 32767).astype(np.int16), rate)[1:-2]) == {LOW}


@pytest.mark.parametrize("speed", [0.5, 2.0])
async def test_speed_changes_the_length_and_not_the_pitch(sdk, run_gateway, speed):
    async with run_gateway(ten_seconds()) as gateway:
        told = await sdk("streamed", url=gateway.url, text="A tone.", speed=speed, **PCM)
    samples = told.pcm("0.audio")
    assert len(samples) / RATE == pytest.approx(seconds(FRAMES) / speed, abs=0.1)
    heard = pitches(samples, RATE)
    assert heard.count(LOW) > 0.9 * len(heard) and HIGH not in heard


@pytest.mark.parametrize("case", ["leaves", "cancelled"])
async def test_a_client_that_leaves_frees_the_engine_at_once(sdk, run_gateway, case):
    engine = ToneEngine(speed=10)
    async with run_gateway(engine) as gateway:
        await sdk(case, url=gateway.url, text=LONG, **PCM)
        await engine.until(lambda: engine.cancelled and not engine.live)


async def test_what_is_wrong_is_an_exception_of_the_package(sdk, run_gateway):
    async with run_gateway(ToneEngine()) as gateway:
        voice = await sdk("fails", url=gateway.url, voice="nobody")
        speed = await sdk("fails", url=gateway.url, speed=9)
        model = await sdk("fails", url=gateway.url, model="gpt-9")
        instructions = await sdk("fails", url=gateway.url, instructions="Whisper.")
    assert (voice["error"], voice["code"]) == ("BadRequestError", "unknown_voice") and "ada, bo" in voice["message"]
    assert (speed["error"], speed["param"]) == ("BadRequestError", "speed")
    assert (model["error"], model["code"]) == ("NotFoundError", "model_not_found")
    assert (instructions["error"], instructions["param"]) == ("BadRequestError", "instructions")


async def test_refusals_are_exceptions_of_the_package(sdk, run_gateway):
    async with run_gateway(ToneEngine(), Settings(keys=ApiKeys({"phone": "a-key"}))) as gateway:
        key = await sdk("fails", url=gateway.url, key="other")
        assert (await sdk("fails", url=gateway.url))["error"] is None
    async with run_gateway(ToneEngine(fail={"It fails.": (0, "engine_failed")})) as gateway:
        failed = await sdk("fails", url=gateway.url, input="It fails.")
    async with run_gateway(ToneEngine(), Settings(limits=Limits(waiting_contexts=0))) as gateway:
        busy = await sdk("fails", url=gateway.url)
    assert (key["error"], key["code"]) == ("AuthenticationError", "invalid_api_key")
    assert (failed["error"], failed["status"], failed["code"]) == ("InternalServerError", 503, "engine_failed")
    assert (busy["error"], busy["status"], busy["code"]) == ("InternalServerError", 503, "overloaded")


async def test_speech_that_fails_midway_is_not_taken_for_the_whole(sdk, run_gateway):
    text = "This text is the bad one."
    async with run_gateway(ToneEngine(fail={text: (2, "engine_failed")})) as gateway:
        told = await sdk("breaks", url=gateway.url, text=text, **PCM)
    assert told["error"] and told["bytes"] > 0


async def test_models_and_what_there_is_not(sdk, run_gateway):
    async with run_gateway(ToneEngine()) as gateway:
        told = await sdk("models", url=gateway.url)
    assert (told["listed"], told["one"]) == (["scripted"], "gpt-4o-mini-tts")
    assert told["unknown"] == {"error": "NotFoundError", "status": 404, "code": "model_not_found"}
    assert told["elsewhere"] == {"error": "NotFoundError", "status": 404, "code": "unknown_url"}
    assert told["method"] == {"error": "APIStatusError", "status": 405, "code": "method_not_supported"}


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_client_may_be_idle_longer_than_connections_are_kept(sdk, run_gateway):
    """The package opens another one then."""
    async with run_gateway(ToneEngine(frames=lambda text: 20)) as gateway:
        told = await sdk("turns", url=gateway.url, texts=TURNS, pause_s=35, **PCM)
    assert set(pitches(told.pcm("1.audio"), RATE)) == {HIGH}


async def test_a_recogniser_understands_it(sdk, voice_url, understood):
    told = await sdk("streamed", url=voice_url, text=SENTENCE, voice="aria", response_format="pcm")
    assert HEARD in understood(told.pcm("0.audio"), RATE)


async def test_a_recording_is_a_voice_by_what_vllm_omni_adds(sdk, voice_url, understood):
    """Which the package passes on as `extra_body`."""
    told = await sdk("turns", url=voice_url, texts=[SENTENCE], voice="milo", response_format="flac")
    recording = base64.b64encode((told.folder / "0.audio").read_bytes()).decode()
    extra = {"ref_audio": recording, "ref_text": SENTENCE, "seed": 3, "sample_rate": 16000, "max_new_tokens": 400}
    told = await sdk("streamed", url=voice_url, text=SENTENCE, voice="aria", response_format="pcm", extra_body=extra)
    assert HEARD in understood(told.pcm("0.audio"), 16000)
