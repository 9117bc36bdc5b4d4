"""The messages that vLLM-Omni documents, as its example client sends and reads them, with a plain WebSocket library."""

from __future__ import annotations

import io
import wave

import numpy as np
import pytest
from client_runs import Told
from tones import HIGH, LOW, ToneEngine, pitches, seconds

FRAMES = 215  # 10 s
LONG = "This is a low tone that goes on for quite some time. " * 12
RATE = 24000  # which that client takes for granted
DEFAULTS = {"speaker": "ada", "task_type": "CustomVoice", "language": "Auto", "response_format": "wav", "speed": 1.0}
STREAMED = {**DEFAULTS, "response_format": "pcm", "stream_audio": True}
TURNS = ["A low one.", "And a high one."]


@pytest.fixture
async def omni(talk):
    async def run(case: str, **arguments: object) -> Told:
        return await talk("websockets", "vllm_omni.py", case, **arguments)

    return run


def kinds(messages: list[dict]) -> list[str]:
    return [message["type"] for message in messages]


def wav(told: Told, name: str) -> np.ndarray:
    with wave.open(io.BytesIO((told.folder / name).read_bytes())) as file:
        assert file.getframerate() == RATE
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


async def test_two_turns_with_the_defaults_of_its_client(omni, run_gateway):
    async with run_gateway(ToneEngine(frames=lambda text: FRAMES)) as gateway:
        told = await omni("turns", url=gateway.url, texts=TURNS, config=DEFAULTS)
    for turn, tone in enumerate((LOW, HIGH)):
        messages = told["messages"][turn]
        assert kinds(messages) == ["audio.start", "audio.done", "session.done"]
        assert (messages[0]["utterance_index"], messages[0]["sentence_text"]) == (turn, TURNS[turn])
        assert messages[1]["pieces"] == 1
        samples = wav(told, f"{turn}-0.audio")
        assert len(samples) == round(seconds(FRAMES) * RATE) and set(pitches(samples, RATE)) == {tone}
    assert told["closed"] == 1000


async def test_audio_is_streamed_while_words_come(omni, run_gateway):
    config = {**STREAMED, "split_granularity": "sentence"}
    async with run_gateway(ToneEngine(frames=lambda text: 20)) as gateway:
        told = await omni(
            "turns", url=gateway.url, texts=["It is low. Then it is high."], config=config, word_by_word=True
        )
    (messages,) = told["messages"]
    assert kinds(messages) == ["audio.start", "audio.done"] * 2 + ["session.done"]
    assert messages[1]["pieces"] > 1 and messages[-1]["total_sentences"] == 2
    assert [set(pitches(told.pcm(f"0-{unit}.audio"), RATE)[1:-1]) for unit in (0, 1)] == [{LOW}, {HIGH}]


async def test_a_client_that_leaves_frees_the_engine_at_once(omni, run_gateway):
    engine = ToneEngine(speed=10)
    async with run_gateway(engine) as gateway:
        await omni("leaves", url=gateway.url, text=LONG, config=STREAMED)
        await engine.until(lambda: engine.cancelled and not engine.live)


async def test_a_connection_may_be_idle(omni, run_gateway):
    async with run_gateway(ToneEngine(frames=lambda text: 20)) as gateway:
        told = await omni("turns", url=gateway.url, texts=TURNS, config=STREAMED, pause_s=2)
    assert set(pitches(told.pcm("1-0.audio"), RATE)) == {HIGH}


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_connection_outlives_the_keep_alive_of_the_client(omni, run_gateway):
    """Which pings after 20 s, and gives up 20 s later."""
    async with run_gateway(ToneEngine(frames=lambda text: 20)) as gateway:
        told = await omni("turns", url=gateway.url, texts=TURNS, config=STREAMED, pause_s=45)
    assert set(pitches(told.pcm("1-0.audio"), RATE)) == {HIGH}


async def test_what_cannot_be_is_told(omni, run_gateway):
    async with run_gateway(ToneEngine()) as gateway:
        told = await omni("refused", url=gateway.url, config={**DEFAULTS, "speaker": "Vivian"})
    assert told["message"]["type"] == "error" and "ada, bo" in told["message"]["message"]
    assert told["closed"] == 1008


async def test_a_recogniser_understands_it(omni, voice_url, understood):
    text = "The quick brown fox jumps over the lazy dog."
    told = await omni("turns", url=voice_url, texts=[text], config={"response_format": "wav"})
    assert "brown fox jumps over the lazy dog" in understood(wav(told, "0-0.audio"), RATE)
