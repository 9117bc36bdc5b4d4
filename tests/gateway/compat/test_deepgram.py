"""Deepgram's API in a running gateway: what a request gets, and how refusals read."""

from __future__ import annotations

import aiohttp
import numpy as np
import pytest
from aiohttp import ClientSession, WSServerHandshakeError
from decoding import decode
from scripted_engine import ScriptedEngine
from tones import LOW, ToneEngine, pitches, seconds

from gateway.keys import ApiKeys
from gateway.settings import Settings
from protocol.limits import Limits

KEY = "k3y"
FRAMES = 43  # 2 s
PATIENCE_S = 20.0


@pytest.fixture
async def http():
    async with ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE_S)) as session:
        yield session


@pytest.fixture
async def tones(run_gateway):
    async with run_gateway(ToneEngine(frames=lambda text: FRAMES)) as gateway:
        yield gateway


@pytest.mark.parametrize(
    ("asked", "content_type", "rate"),
    [
        ({}, "audio/mpeg", 22050),
        ({"encoding": "linear16"}, "audio/wav", 24000),
        ({"encoding": "linear16", "sample_rate": "48000"}, "audio/wav", 48000),
        ({"encoding": "flac", "sample_rate": "16000"}, "audio/flac", 16000),
        ({"encoding": "opus", "container": "ogg"}, "audio/ogg", 48000),
        ({"encoding": "aac"}, "audio/aac", 22050),
    ],
)
async def test_each_encoding_is_a_file(tones, http, asked, content_type, rate):
    async with http.post(f"{tones.url}/v1/speak", params=asked, json={"text": "A tone."}) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, content_type)
        samples, decoded_rate = decode(await answer.read())
    assert decoded_rate == rate and abs(len(samples) / rate - seconds(FRAMES)) < 0.15
    assert set(pitches((samples * 32767).astype(np.int16), rate)[1:-1]) == {LOW}


async def test_bare_samples(tones, http):
    asked = {"model": "bo", "encoding": "linear16", "container": "none", "sample_rate": "8000"}
    async with http.post(f"{tones.url}/v2/speak", params=asked, json={"text": "A tone."}) as answer:
        assert answer.headers["Content-Type"] == "audio/l16;rate=8000;channels=1"
        samples = np.frombuffer(await answer.read(), "<i2")
    assert len(samples) == round(seconds(FRAMES) * 8000) and set(pitches(samples, 8000)) == {LOW}
    assert [request.voice for request in tones.engine.submitted] == ["bo"]


@pytest.mark.parametrize(
    ("path", "asked", "body", "words"),
    [
        ("v1", {"model": "nobody"}, {"text": "Hi."}, "ada, bo"),
        ("v1", {"encoding": "vorbis"}, {"text": "Hi."}, "encoding must be one of mp3, linear16,"),
        ("v1", {"encoding": "opus", "container": "wav"}, {"text": "Hi."}, "container must be one of ogg; got"),
        ("v1", {"sample_rate": "11025"}, {"text": "Hi."}, "sample_rate must be one of 8000,"),
        ("v1", {"sample_rate": "fast"}, {"text": "Hi."}, "sample_rate must be a number"),
        ("v1", {"callback": "http://x"}, {"text": "Hi."}, "unknown parameter 'callback'"),
        ("v1", {}, {"url": "http://x"}, "text must be a string"),
        ("v1", {}, {"text": " "}, "text must be a string that is not empty"),
        ("v1", {}, [], "must be a JSON object"),
        ("v2", {}, {"text": "Hi."}, "model is missing; voices: ada, bo"),
        ("v2", {"model": "ada", "speed": "0.51"}, {"text": "Hi."}, "speed must be a multiple of 0.05"),
        ("v2", {"model": "ada", "expressivity": "2"}, {"text": "Hi."}, "expressivity must be one of 0"),
    ],
)
async def test_what_cannot_be_spoken(gateway, http, path, asked, body, words):
    async with http.post(f"{gateway.url}/{path}/speak", params=asked, json=body) as answer:
        assert answer.status == 400
        told = await answer.json()
        assert set(told) == {"err_code", "err_msg", "request_id"} and words in told["err_msg"]
        assert answer.headers["dg-error"] == told["err_msg"] and answer.headers["dg-request-id"] == told["request_id"]


@pytest.mark.parametrize("upgrade", [False, True], ids=["request", "socket"])
async def test_a_key_is_needed_in_any_of_its_forms(run_gateway, http, upgrade):
    settings = Settings(keys=ApiKeys({"phone": KEY}))
    async with run_gateway(ScriptedEngine(), settings) as gateway:
        address = f"{gateway.url}/v1/speak"

        async def status(**headers: str) -> int:
            if not upgrade:
                async with http.post(address, json={"text": "Hi."}, headers=headers) as answer:
                    return answer.status
            try:
                async with http.ws_connect(address, headers=headers):
                    return 200
            except WSServerHandshakeError as error:
                assert "dg-error" in error.headers
                return error.status

        assert await status() == await status(Authorization="Token other") == 401
        assert await status(Authorization=f"Token {KEY}") == await status(Authorization=f"Bearer {KEY}") == 200


async def test_a_page_offers_its_key_as_a_subprotocol(run_gateway, http):
    async with (
        run_gateway(ScriptedEngine(), Settings(keys=ApiKeys({"phone": KEY}))) as gateway,
        http.ws_connect(f"{gateway.url}/v1/speak", protocols=("token", KEY)) as socket,
    ):
        assert socket.protocol == "token"
        assert (await socket.receive_json())["type"] == "Metadata"


async def test_a_key_has_so_many_connections(run_gateway, http):
    settings = Settings(keys=ApiKeys({"phone": KEY}), limits=Limits(key_connections=1))
    headers = {"Authorization": f"Token {KEY}"}
    async with (
        run_gateway(ScriptedEngine(), settings) as gateway,
        http.ws_connect(f"{gateway.url}/v1/speak", headers=headers),
        http.post(f"{gateway.url}/v1/speak", json={"text": "Hi."}, headers=headers) as answer,
    ):
        assert answer.status == 429 and (await answer.json())["err_code"] == "TOO_MANY_REQUESTS"
