"""ElevenLabs' own package over TLS: requests, `convert_realtime`, several contexts on a socket, voices, errors."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from certificates import OPENSSL, make_certificate
from client_runs import Told
from decoding import decode
from tones import HIGH, LOW, ToneEngine, pitches, seconds

from gateway.keys import ApiKeys
from gateway.settings import Settings

pytestmark = pytest.mark.skipif(OPENSSL is None, reason="openssl makes the certificate")

FRAMES = 215  # 10 s
LONG = "This is a low tone that goes on for quite some time. " * 12
RATE = 24000
PCM = {"output_format": "pcm_24000"}
SENTENCE = "The quick brown fox jumps over the lazy dog."
HEARD = "brown fox jumps over the lazy dog"
TURNS = ["A low one.", "And a high one."]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def run_tls(run_gateway, certificate):
    return partial(run_gateway, tls=certificate)


@pytest.fixture
def sdk(talk, certificate):
    async def run(case: str, **arguments: object) -> Told:
        trusted = {"SSL_CERT_FILE": str(certificate[0])}
        return await talk("elevenlabs", "elevenlabs_sdk.py", case, env=trusted, **arguments)

    return run


def tones(told: Told, turn: int = 0, rate: int = RATE) -> set[float]:
    return set(pitches(told.pcm(f"{turn}.audio"), rate))


@pytest.mark.parametrize("case", ["convert", "stream", "convert_async"])
async def test_two_turns(sdk, run_tls, case):
    async with run_tls(ToneEngine(frames=lambda text: 20)) as gateway:
        told = await sdk(case, url=gateway.url, texts=TURNS, voice="bo", **PCM)
        assert {request.voice for request in gateway.engine.submitted} == {"bo"}
    assert (tones(told, 0), tones(told, 1)) == ({LOW}, {HIGH})
    assert len(told.pcm("1.audio")) == round(seconds(20) * RATE)


@pytest.mark.parametrize("rate", [8000, 16000, 44100])
async def test_a_tone_keeps_its_pitch_and_length(sdk, run_tls, rate):
    async with run_tls(ToneEngine(frames=lambda text: FRAMES)) as gateway:
        told = await sdk("stream", url=gateway.url, texts=["A tone."], voice="ada", output_format=f"pcm_{rate}")
    assert len(told.pcm("0.audio")) == round(seconds(FRAMES) * rate) and tones(told, 0, rate) == {LOW}


async def test_the_default_is_mp3(sdk, run_tls):
    async with run_tls(ToneEngine(frames=lambda text: FRAMES)) as gateway:
        told = await sdk("convert", url=gateway.url, texts=["A tone."], voice="ada")
    samples, rate = decode((told.folder / "0.audio").read_bytes())
    assert rate == 44100 and abs(len(samples) / rate - seconds(FRAMES)) < 0.15
    assert set(pitches((samples * 32767).astype(np.int16), rate)[1:-2]) == {LOW}


async def test_speed_changes_the_length(sdk, run_tls):
    async with run_tls(ToneEngine(frames=lambda text: FRAMES)) as gateway:
        told = await sdk("convert", url=gateway.url, texts=["A tone."], voice="ada", speed=0.8, **PCM)
    assert len(told.pcm("0.audio")) / RATE == pytest.approx(seconds(FRAMES) / 0.8, abs=0.1)


async def test_times_of_characters(sdk, run_tls):
    async with run_tls(ToneEngine(frames=lambda text: 20)) as gateway:
        told = await sdk("timed", url=gateway.url, text="A low one.", voice="ada")
    assert told["whole"].rstrip() == told["streamed"].rstrip() == "A low one."
    assert told["end"] == pytest.approx(seconds(20), abs=0.05)
    assert tones(told, 0) == tones(told, 1) == {LOW}


async def test_a_client_that_leaves_frees_the_engine(sdk, run_tls):
    engine = ToneEngine(speed=10)
    async with run_tls(engine) as gateway:
        await sdk("leaves", url=gateway.url, text=LONG, voice="ada")
        await engine.until(lambda: engine.cancelled and not engine.live)


async def test_words_are_spoken_as_they_come(sdk, run_tls):
    async with run_tls(ToneEngine(frames=lambda text: FRAMES)) as gateway:
        told = await sdk("realtime", url=gateway.url, words=["A", " low", " one", "."], voice="bo", **PCM)
        (request,) = gateway.engine.submitted
    assert (request.voice, request.text) == ("bo", "A low one.")
    assert len(told.pcm("0.audio")) == round(seconds(FRAMES) * RATE) and tones(told) == {LOW}


async def test_several_contexts_on_one_connection(sdk, run_tls):
    async with run_tls(ToneEngine(frames=lambda text: 20)) as gateway:
        told = await sdk("multi", url=gateway.url, texts=TURNS)
    assert (tones(told, 0), tones(told, 1)) == ({LOW}, {HIGH})
    assert len(told.pcm("1.audio")) == round(seconds(20) * RATE)
    assert (told["rest"], told["code"]) == (0, 1000)


async def test_a_connection_may_be_idle_while_it_is_kept_alive(sdk, run_tls):
    async with run_tls(ToneEngine(frames=lambda text: 20)) as gateway:
        told = await sdk("multi", url=gateway.url, texts=TURNS, pause_s=3, keep_alive_s=0.5, inactivity_timeout=2)
    assert tones(told, 1) == {HIGH}


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_client_may_be_idle_longer_than_connections_are_kept(sdk, run_tls):
    """Requests then have another one; the socket lives on keep-alives, beyond the pings of either side."""
    async with run_tls(ToneEngine(frames=lambda text: 20)) as gateway:
        asked = await sdk("convert", url=gateway.url, texts=TURNS, voice="ada", pause_s=35, **PCM)
        told = await sdk("multi", url=gateway.url, texts=TURNS, pause_s=45, keep_alive_s=10)
    assert tones(asked, 1) == tones(told, 1) == {HIGH}


async def test_nothing_stale_is_heard_after_an_interruption(sdk, run_tls):
    engine = ToneEngine(speed=100)
    async with run_tls(engine) as gateway:
        told = await sdk("barge_in", url=gateway.url, first=LONG, second="A high one.")
        assert engine.cancelled and not engine.live
    assert tones(told, 0) == {LOW} and tones(told, 1) == {HIGH}
    assert len(told.pcm("0.audio")) / RATE < 20


async def test_voices_and_models(sdk, run_tls):
    async with run_tls(ToneEngine()) as gateway:
        told = await sdk("voices", url=gateway.url)
    assert told["all"] == [["ada", "premade"], ["bo", "premade"]]
    assert (told["found"], told["one"]) == (["bo"], "bo")
    assert told["models"] == [["scripted", True]]


async def test_what_is_wrong_is_an_error_of_the_package(sdk, run_tls):
    fail = {"It fails.": (0, "engine_failed")}
    async with run_tls(ToneEngine(fail=fail), Settings(keys=ApiKeys({"phone": "a-key"}))) as gateway:
        fails = partial(sdk, "fails", url=gateway.url)
        voice, wide = await fails(voice="nobody"), await fails(voice="nobody", realtime=True)
        unknown, late = await fails(key="other"), await fails(key="other", realtime=True)
        form, failed = await fails(output_format="wma"), await fails(text="It fails.", realtime=True)
        assert (await fails())["status"] is None
    assert voice["status"] == 404 and voice["body"]["detail"]["status"] == "voice_not_found"
    assert "ada, bo" in voice["body"]["detail"]["message"]
    assert unknown["status"] == 401 and unknown["body"]["detail"]["status"] == "invalid_api_key"
    assert form["status"] == 400 and "output_format must be one of" in form["body"]["detail"]["message"]
    assert wide["status"] == 1008 and "'nobody'" in json.dumps(wide["body"])
    assert late["status"] == 1008 and "API key" in json.dumps(late["body"])
    assert failed["status"] == 1011 and failed["body"]


@pytest.mark.parametrize(
    ("case", "said"),
    [("convert", {"texts": [SENTENCE]}), ("realtime", {"words": [f"{word} " for word in SENTENCE.split()]})],
)
async def test_a_recogniser_understands_it(talk, secure_voice, understood, case, said):
    url, certificate = secure_voice
    trusted = {"SSL_CERT_FILE": str(certificate)}
    told = await talk("elevenlabs", "elevenlabs_sdk.py", case, env=trusted, url=url, voice="aria", **said, **PCM)
    assert HEARD in understood(told.pcm("0.audio"), RATE)
