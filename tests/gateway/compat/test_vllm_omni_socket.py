"""vLLM-Omni's socket in a running gateway: what comes, how it ends, and how refusals read."""

from __future__ import annotations

import base64
import io
import wave
from contextlib import asynccontextmanager

import numpy as np
import pytest
from aiohttp import ClientSession, WSMsgType, WSServerHandshakeError
from tones import HIGH, LOW, ToneEngine, pitches, seconds

from gateway.keys import ApiKeys
from gateway.settings import Settings

FRAMES = 20
PATH = "/v1/audio/speech/stream"


@asynccontextmanager
async def connected(gateway, headers: dict | None = None):
    async with ClientSession() as http, http.ws_connect(gateway.url + PATH, headers=headers or {}) as socket:
        yield socket


async def say(socket, text: str, **config: object) -> None:
    """One utterance."""
    if config:
        await socket.send_json({"type": "session.config", **config})
    await socket.send_json({"type": "input.text", "text": text})
    await socket.send_json({"type": "input.done"})


async def answer(socket) -> tuple[list[dict], list[bytes]]:
    """(messages, audio) up to the end of an utterance."""
    messages, audio = [], []
    while not messages or messages[-1]["type"] != "session.done":
        message = await socket.receive(timeout=20)
        if message.type is WSMsgType.BINARY:
            audio.append(message.data)
        else:
            messages.append(message.json())
    return messages, audio


@pytest.fixture
async def toned(run_gateway):
    async with run_gateway(ToneEngine(frames=lambda text: FRAMES)) as gateway:
        yield gateway


async def test_two_turns_on_one_connection(toned):
    async with connected(toned) as socket:
        await socket.send_json(
            {"type": "session.config", "response_format": "pcm", "stream_audio": True, "voice": "bo"}
        )
        for turn, (text, tone) in enumerate([("A low one.", LOW), ("A high one.", HIGH)]):
            await say(socket, text)
            messages, audio = await answer(socket)
            start, done, end = messages
            samples = np.frombuffer(b"".join(audio), "<i2")
            assert (start["sentence_text"], start["sample_rate"]) == (text, 24000)
            assert len(samples) == round(seconds(FRAMES) * 24000) and set(pitches(samples, 24000)) == {tone}
            assert (done["total_bytes"], done["error"]) == (2 * len(samples), False)
            assert (end["utterance_index"], end["total_sentences"]) == (turn, 1)
        await socket.send_json({"type": "session.close"})
        assert (await socket.receive(timeout=10)).data == 1000
    assert {request.voice for request in toned.engine.submitted} == {"bo"}


async def test_sentences_are_files_of_their_own(toned):
    async with connected(toned) as socket:
        await say(socket, "The first one is low. The second one is high.", split_granularity="sentence", voice="ada")
        messages, audio = await answer(socket)
    assert [message["type"] for message in messages] == ["audio.start", "audio.done"] * 2 + ["session.done"]
    tones = []
    for data in audio:
        with wave.open(io.BytesIO(data)) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
            tones.append(set(pitches(samples, file.getframerate())[1:-1]))
    assert tones == [{LOW}, {HIGH}]


@pytest.mark.parametrize("response_format", ["flac", "mp3", "opus", "aac"])
async def test_other_formats_are_one_message(toned, response_format):
    async with connected(toned) as socket:
        await say(socket, "A low one.", response_format=response_format)
        messages, audio = await answer(socket)
    assert len(audio) == 1 and messages[1]["total_bytes"] == len(audio[0])
    assert messages[0]["format"] == response_format


async def test_a_client_that_leaves_frees_the_engine_at_once(run_gateway):
    engine = ToneEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway:
        async with connected(gateway) as socket:
            await say(
                socket, "A rather long text that is not spoken to its end.", response_format="pcm", stream_audio=True
            )
            assert (await socket.receive_json(timeout=10))["type"] == "audio.start"
        await engine.until(lambda: engine.cancelled and not engine.live)


async def test_a_failure_is_told_and_the_next_utterance_is_spoken(run_gateway):
    async with (
        run_gateway(ToneEngine(fail={"It fails.": (0, "engine_failed")})) as gateway,
        connected(gateway) as socket,
    ):
        await say(socket, "It fails.", voice="ada")
        messages, _ = await answer(socket)
        assert [message["type"] for message in messages] == ["audio.start", "error", "audio.done", "session.done"]
        await say(socket, "It goes on.")
        messages, audio = await answer(socket)
        assert audio and messages[-1]["utterance_index"] == 1


async def test_what_is_wrong_is_told(toned):
    async with connected(toned) as socket:
        await socket.send_json({"type": "session.config", "voice": "nobody"})
        assert "ada, bo" in (await socket.receive_json(timeout=10))["message"]
        assert (await socket.receive(timeout=10)).data == 1008


async def test_a_recording_that_is_none_is_refused(toned):
    async with connected(toned) as socket:
        sound = base64.b64encode(b"no sound").decode()
        await say(socket, "Hello.", ref_audio=sound, ref_text="What was said.")
        message = await socket.receive_json(timeout=10)
        while message["type"] != "error":
            message = await socket.receive_json(timeout=10)
        assert "ref_audio" in message["message"]


async def test_who_may_not_speak_is_told_in_the_words_of_openai(run_gateway):
    async with run_gateway(ToneEngine(), Settings(keys=ApiKeys({"phone": "k3y"}))) as gateway:
        with pytest.raises(WSServerHandshakeError) as refused:
            async with connected(gateway):
                pass
        assert refused.value.status == 401
        async with connected(gateway, {"Authorization": "Bearer k3y"}):
            pass
