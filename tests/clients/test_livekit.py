"""LiveKit's own package with our adapter, and its plugins for ElevenLabs, Deepgram and OpenAI, against the gateway."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from client_runs import Told
from scraped import scrape
from tones import HIGH, LOW, ToneEngine, pitches, seconds

from gateway.keys import ApiKeys
from gateway.settings import Settings
from protocol.limits import Limits

FRAMES = 215  # 10 s
HEARD = "brown fox jumps over the lazy dog"
KINDS = ["ours", "elevenlabs", "deepgram", "flux", "openai"]
LONG = "This is a low tone that goes on for quite some time. " * 12
OTHERS = KINDS[1:]
RATE = 24000
ROOT = Path(__file__).parents[2]
SENTENCE = "The quick brown fox jumps over the lazy dog."
TURNS = ["A low one.", "And a high one."]


def heavy(*kinds: str) -> list:
    """Ours by default, the others where time is no matter: the package takes seconds to load."""
    return [kind if kind == "ours" else pytest.param(kind, marks=pytest.mark.slow) for kind in kinds]


@pytest.fixture
async def agents(talk):
    async def run(case: str, **arguments: object) -> Told:
        return await talk("livekit", "livekit_agents.py", case, {"PYTHONPATH": str(ROOT)}, **arguments)

    return run


def tones(told: Told, turn: int) -> set[float]:
    """What is heard in a turn; LiveKit may add 10 ms of silence."""
    return set(pitches(told.pcm(f"{turn}.pcm"), RATE))


@pytest.mark.parametrize("kind", heavy(*KINDS))
async def test_two_turns_on_one_connection(agents, run_gateway, kind):
    async with run_gateway(ToneEngine(frames=lambda text: 20)) as gateway:
        told = await agents("turns", url=gateway.url, kind=kind, texts=TURNS, voice="bo")
        assert {request.voice for request in gateway.engine.submitted} == {"bo"}
        if kind != "openai":  # which asks by HTTP
            assert (await scrape(gateway.port))["audio8_connections_opened_total"] == {"": 1}
    assert [turn["rates"] for turn in told.values] == [[RATE], [RATE]]
    assert (tones(told, 0), tones(told, 1)) == ({LOW}, {HIGH})
    if kind == "ours":
        assert [turn["segments"] for turn in told.values] == [[["A low one. ", 0]], [["And a high one. ", 0]]]


@pytest.mark.parametrize("kind", heavy(*KINDS))
async def test_a_tone_keeps_its_pitch_and_length(agents, run_gateway, kind):
    """What is longer are 10 ms, with which LiveKit may mark an end."""
    async with run_gateway(ToneEngine(frames=lambda text: FRAMES)) as gateway:
        told = await agents("whole", url=gateway.url, kind=kind, text="A tone.")
    samples = told.pcm("0.pcm")
    assert len(samples) / RATE == pytest.approx(seconds(FRAMES), abs=0.011) and told["rates"] == [RATE]
    assert set(pitches(samples[: RATE * 9], RATE)) == {LOW}


async def test_nothing_stale_is_heard_behind_an_interruption(agents, run_gateway):
    """On the same connection; the gateway has stopped the first one long before its end."""
    engine = ToneEngine(speed=100)
    async with run_gateway(engine) as gateway:
        told = await agents("barge_in", url=gateway.url, kind="ours", first=LONG, second="A high one.")
        assert (await scrape(gateway.port))["audio8_connections_opened_total"] == {"": 1}
        assert engine.cancelled and not engine.live
    assert tones(told, 1) <= {HIGH, 0.0} and HIGH in tones(told, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["deepgram", "flux"])
async def test_nothing_stale_is_heard_on_the_next_connection(agents, run_gateway, kind):
    """These plugins take another one after an interruption."""
    engine = ToneEngine(speed=100)
    async with run_gateway(engine) as gateway:
        told = await agents("barge_in", url=gateway.url, kind=kind, first=LONG, second="A high one.")
        await engine.until(lambda: not engine.live)
    assert tones(told, 1) <= {HIGH, 0.0} and HIGH in tones(told, 1)


async def test_a_flush_is_spoken_while_the_stream_is_open(agents, run_gateway):
    async with run_gateway(ToneEngine(frames=lambda text: 20)) as gateway:
        told = await agents("flushed", url=gateway.url, kind="ours", text="No end of a sentence")
    assert told["first"] > 0 and told["segments"] == []


async def test_text_without_a_word_is_no_failure(agents, run_gateway):
    """For LiveKit, a text of which no audio came has failed."""
    async with run_gateway(ToneEngine()) as gateway:
        told = await agents("whole", url=gateway.url, kind="ours", text="👍")
        assert not gateway.engine.submitted
    assert len(told.pcm("0.pcm")) < RATE / 10


async def test_what_is_wrong_is_an_error_of_livekit(agents, run_gateway):
    failing = ToneEngine(fail={"It fails.": (0, "engine_failed")})
    async with run_gateway(failing, Settings(keys=ApiKeys({"phone": "a-key"}))) as gateway:
        given = {"url": gateway.url, "kind": "ours", "text": "Hello.", "retries": 1}
        voice = await agents("fails", voice="nobody", **given)
        key = await agents("fails", key="other", **given)
        failed = await agents("fails", **given | {"text": "It fails."})
    nobody = await agents("fails", **given)
    assert (voice["error"], voice["status"], voice["retryable"]) == ("APIStatusError", 400, False)
    assert voice["body"]["code"] == "unknown_voice" and "ada, bo" in voice["message"]
    assert (key["error"], key["status"], key["retryable"]) == ("APIStatusError", 401, False)
    assert key["events"] == [["APIStatusError", False]]
    assert (failed["error"], failed["status"], failed["retryable"]) == ("APIStatusError", 503, True)
    assert failed["events"] == [["APIStatusError", True], ["APIStatusError", False]]
    assert nobody["error"] == "APIConnectionError" and "no gateway at" in nobody["message"]


async def test_no_audio_in_time_is_an_error_of_livekit(agents, run_gateway):
    engine = ToneEngine()
    engine.gate.clear()
    async with run_gateway(engine) as gateway:
        told = await agents("fails", url=gateway.url, kind="ours", text="Hello.", timeout=0.5)
        await engine.until(lambda: not engine.live)
    assert told["error"] == "APITimeoutError"


@pytest.mark.slow
@pytest.mark.parametrize("kind", OTHERS)
async def test_what_is_wrong_is_an_error_of_the_plugins(agents, run_gateway, kind):
    async with run_gateway(ToneEngine(), Settings(keys=ApiKeys({"phone": "a-key"}))) as gateway:
        told = await agents("fails", url=gateway.url, kind=kind, text="Hello.", voice="nobody")
    assert told["error"] in ("APIStatusError", "APIError", "APIConnectionError"), told.values


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_connection_may_be_idle(agents, run_gateway, kind):
    """Longer than the gateway keeps it, and than the 20 s after which clients ping."""
    settings = Settings(limits=replace(Limits(), idle_s=5))
    async with run_gateway(ToneEngine(frames=lambda text: 20), settings) as gateway:
        told = await agents("turns", url=gateway.url, kind=kind, texts=TURNS, pause_s=45)
    assert (tones(told, 0), tones(told, 1)) == ({LOW}, {HIGH})


@pytest.mark.parametrize("kind", heavy(*KINDS))
async def test_a_recogniser_understands_it(agents, voice_url, understood, kind):
    told = await agents("turns", url=voice_url, kind=kind, texts=[SENTENCE], voice="aria")
    assert HEARD in understood(told.pcm("0.pcm"), RATE)
