"""ElevenLabs' sockets in a running gateway: who may speak, in which voice and format, and how refusals read."""

from __future__ import annotations

import base64
import logging
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest
from aiohttp import ClientSession, WSMsgType, WSServerHandshakeError
from scripted_engine import FRAME_SAMPLES, ScriptedEngine, frames_for, ramp

from gateway.keys import ApiKeys
from gateway.settings import Settings
from protocol.limits import Limits

KEY = "k3y"
LOCKED = Settings(keys=ApiKeys({"phone": KEY}), limits=Limits(handshake_s=5, key_connections=1))


@asynccontextmanager
async def connected(gateway, path: str = "ada/multi-stream-input", headers: dict | None = None, **query: str):
    url = f"http://127.0.0.1:{gateway.port}/v1/text-to-speech/{path}"
    async with ClientSession() as http, http.ws_connect(url, params=query, headers=headers or {}) as socket:
        yield socket


async def spoken(socket, **last: object) -> tuple[bytes, str]:
    """Audio and characters up to the end of the context or connection."""
    if last:
        await socket.send_json(last)
    audio, chars = b"", ""
    while not (message := await socket.receive_json(timeout=10))["isFinal"]:
        audio += base64.b64decode(message["audio"] or "")
        chars += "".join((message["alignment"] or {"chars": []})["chars"])
    return audio, chars


async def farewell(socket) -> tuple[dict, int, str]:
    """(error message, close code, reason)."""
    told = await socket.receive_json(timeout=10)
    closed = await socket.receive(timeout=10)
    assert closed.type is WSMsgType.CLOSE
    return told, closed.data, closed.extra


@pytest.fixture
async def locked(run_gateway):
    async with run_gateway(ScriptedEngine(), LOCKED) as gateway:
        yield gateway


async def test_two_turns_on_one_connection(gateway):
    async with connected(gateway, output_format="pcm_44100") as socket:
        for name in ("a", "b"):
            await socket.send_json({"text": " ", "context_id": name})
            await socket.send_json({"text": "Hello there. ", "context_id": name})
            await socket.send_json({"context_id": name, "flush": True})
            audio, chars = await spoken(socket, context_id=name, close_context=True)
            samples = np.frombuffer(audio, "<i2")
            assert np.array_equal(samples, np.round(ramp(0, len(samples)) * 32767).astype(np.int16))
            assert len(samples) == frames_for("Hello there.") * FRAME_SAMPLES
            assert chars == "Hello there. "


async def test_one_text_then_the_end(gateway):
    async with connected(gateway, "ada/stream-input", output_format="ulaw_8000") as socket:
        await socket.send_json({"text": "Hello there."})
        audio, chars = await spoken(socket, text="")
        assert len(audio) == round(frames_for("Hello there.") * FRAME_SAMPLES * 8000 / 44100)
        assert chars == "Hello there. "
        closed = await socket.receive(timeout=10)
        assert closed.data == 1000


async def test_mp3_is_what_one_gets_without_asking(gateway):
    async with connected(gateway, "ada/stream-input") as socket:
        await socket.send_json({"text": "Hello there."})
        audio, _ = await spoken(socket, text="")
        assert audio[0] == 0xFF and audio[1] & 0xE0 == 0xE0


async def test_an_interruption_frees_the_engine_at_once(run_gateway):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, connected(gateway, output_format="pcm_8000") as socket:
        await socket.send_json({"text": "A rather long text. ", "context_id": "a", "flush": True})
        assert (await socket.receive_json())["contextId"] == "a"
        await socket.send_json({"text": "wait ", "context_id": "a"})
        await spoken(socket, context_id="a", close_context=True)
        await engine.until(lambda: not engine.live)
        engine.chunk_gate.set()
        await socket.send_json({"text": "New. ", "context_id": "b", "flush": True})
        _, chars = await spoken(socket, context_id="b", close_context=True)
        assert chars == "New. "


async def test_voices_have_other_names(run_gateway):
    settings = Settings(voice_aliases={"21m00Tcm4TlvDq8ikWAM": "bo"})
    async with run_gateway(ScriptedEngine(), settings) as gateway:
        async with connected(gateway, "21m00Tcm4TlvDq8ikWAM/stream-input") as socket:
            await socket.send_json({"text": "Hi."})
            await spoken(socket, text="")
        assert gateway.engine.submitted[0].voice == "bo"


async def test_an_unknown_voice(gateway):
    async with connected(gateway, "nobody/stream-input") as socket:
        told, code, reason = await farewell(socket)
    assert told["error"] == "voice_id_does_not_exist" and told["code"] == code == 1008
    assert "'nobody'" in told["message"] and "ada, bo" in told["message"] and reason == told["message"]


async def test_an_unknown_format(gateway):
    async with connected(gateway, output_format="wma_44100") as socket:
        told, code, _ = await farewell(socket)
    assert told["error"] == "bad_value" and "output_format must be one of pcm_8000" in told["message"] and code == 1008


@pytest.mark.parametrize("headers", [{"xi-api-key": KEY}, {"Authorization": f"Bearer {KEY}"}])
async def test_a_key_in_the_header(locked, headers):
    async with connected(locked, headers=headers) as socket:
        await socket.send_json({"text": "Hi. ", "flush": True})
        assert (await spoken(socket, close_context=True))[1] == "Hi. "


@pytest.mark.parametrize("field", [{"xi-api-key": KEY}, {"xi_api_key": KEY}, {"authorization": f"Bearer {KEY}"}])
async def test_a_key_in_the_first_message(locked, field, caplog):
    caplog.set_level(logging.INFO)
    async with connected(locked) as socket:
        await socket.ping()
        await socket.send_json({"text": "Hi. ", "flush": True, **field})
        assert (await spoken(socket, close_context=True))[1] == "Hi. "
    assert "key=phone" in caplog.text and KEY not in caplog.text


@pytest.mark.parametrize("first", [{"text": "Hi. ", "xi-api-key": "wrong"}, {"text": "Hi. "}])
async def test_no_key_in_the_first_message(locked, first):
    async with connected(locked) as socket:
        await socket.send_json(first)
        told, code, _ = await farewell(socket)
    assert told == {"message": "a valid API key is needed", "error": "invalid_api_key", "code": 1008} and code == 1008
    assert not locked.engine.submitted


async def test_a_wrong_key_in_the_header_is_refused_without_waiting(locked):
    async with connected(locked, headers={"xi-api-key": "wrong"}) as socket:
        told, _, _ = await farewell(socket)
    assert told["error"] == "invalid_api_key"


async def test_who_says_nothing_is_not_waited_for(run_gateway):
    settings = replace(LOCKED, limits=Limits(handshake_s=0.1))
    async with run_gateway(ScriptedEngine(), settings) as gateway, connected(gateway) as socket:
        told, _, _ = await farewell(socket)
    assert told["error"] == "invalid_api_key"


async def test_a_key_has_so_many_connections(locked):
    async with connected(locked, headers={"xi-api-key": KEY}), connected(locked) as second:
        await second.send_json({"text": " ", "xi-api-key": KEY})
        told, _, _ = await farewell(second)
    assert told["error"] == "rate_limited"


async def test_a_foreign_page_is_refused_before_the_upgrade(gateway):
    with pytest.raises(WSServerHandshakeError, match="403"):
        async with connected(gateway, headers={"Origin": "https://evil.example"}):
            pass


async def test_who_falls_silent_is_told_so(run_gateway):
    now = 0.0
    settings = Settings(tick_s=0.01)
    running = run_gateway(ScriptedEngine(), settings, clock=lambda: now)
    async with running as gateway, connected(gateway, inactivity_timeout="60") as socket:
        await socket.send_json({"text": " ", "context_id": "a"})
        await socket.send_json({"text": "Hi. ", "context_id": "b", "flush": True})
        await spoken(socket, context_id="b", close_context=True)
        now = 59.0
        await socket.send_json({"text": ""})
        await socket.send_json({"text": "Hi. ", "context_id": "b", "flush": True})
        await spoken(socket, context_id="b", close_context=True)
        now = 125.0
        told, code, _ = await farewell(socket)
    assert (told["error"], code) == ("input_timeout_exceeded", 1008) and "60 seconds" in told["message"]
