"""`POST /v1/audio/speech` over a real connection: what comes, how errors are told, and what it leaves behind."""

from __future__ import annotations

import asyncio
import base64
import json
import socket

import aiohttp
import numpy as np
import pytest
from aiohttp import ClientSession
from decoding import decode
from running_gateway import RunningGateway
from scraped import scrape
from scripted_engine import FRAME_SAMPLES, ScriptedEngine, frames_for
from tones import LOW, ToneEngine, pitches

from gateway.keys import ApiKeys
from gateway.server import shut_down, wind_down
from gateway.settings import Settings
from protocol.config import NATIVE_RATE
from protocol.limits import Limits

TEXT = "A sentence that is long enough to have some chunks of audio. And one more."
LONG = TEXT * 20
PATIENCE_S = 20.0


@pytest.fixture
async def http():
    async with ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE_S)) as session:
        yield session


def url(gateway: RunningGateway, path: str = "/v1/audio/speech") -> str:
    return gateway.url + path


def asked(text: str = TEXT, **fields: object) -> dict[str, object]:
    return {"model": "tts-1", "voice": "ada", "input": text, **fields}


def events(body: bytes) -> list[dict]:
    """Of an event stream, each with its name as `event`."""
    blocks = [block.split("\n") for block in body.decode().strip().split("\n\n")]
    return [json.loads(data.removeprefix("data: ")) | {"event": name.removeprefix("event: ")} for name, data in blocks]


def spoken_samples(engine: ScriptedEngine, rate: int) -> int:
    """How many all segments together have."""
    frames = [frames_for(request.text) for request in engine.submitted]
    return sum(int(count * FRAME_SAMPLES * rate / NATIVE_RATE + 0.5) for count in frames)


# What comes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response_format", "rate", "content_type"),
    [
        ("mp3", 24000, "audio/mpeg"),
        ("opus", 48000, "audio/opus"),
        ("aac", 24000, "audio/aac"),
        ("flac", 24000, "audio/flac"),
        ("wav", 24000, "audio/wav"),
    ],
)
async def test_each_format_is_a_file(run_gateway, http, response_format, rate, content_type):
    async with run_gateway(ToneEngine()) as gateway:
        async with http.post(url(gateway), json=asked(response_format=response_format)) as answer:
            assert (answer.status, answer.content_type) == (200, content_type)
            data = await answer.read()
        count = spoken_samples(gateway.engine, rate)
    samples, decoded_rate = decode(data)
    assert decoded_rate == rate
    assert 0 <= len(samples) - count < 5000
    heard = pitches((samples * 32768).astype(np.int16), rate)
    assert heard.count(LOW) > 0.9 * len(heard)


@pytest.mark.parametrize(("fields", "rate"), [({}, 24000), ({"sample_rate": 16000}, 16000), ({"speed": 2}, 12000)])
async def test_pcm_is_24_khz_unless_asked_otherwise(gateway, http, fields, rate):
    async with http.post(url(gateway), json=asked(response_format="pcm", **fields)) as answer:
        data = await answer.read()
    assert abs(len(data) - 2 * spoken_samples(gateway.engine, rate)) <= 4


async def test_the_default_is_mp3_and_the_first_audio_does_not_wait_for_the_last(run_gateway, http):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, http.post(url(gateway), json=asked()) as answer:
        assert answer.content_type == "audio/mpeg"
        assert await answer.content.readany()
        engine.chunk_gate.set()
        assert await answer.read()


async def test_events_have_the_audio_in_small_pieces_and_the_usage(gateway, http):
    ask = asked(response_format="pcm", stream_format="sse", sample_rate=48000)
    async with http.post(url(gateway), json=ask) as answer:
        assert answer.content_type == "text/event-stream"
        body = await answer.read()
    *deltas, done = events(body)
    assert {(each["type"], each["event"]) for each in deltas} == {("speech.audio.delta",) * 2}
    assert max(map(len, body.split(b"\n"))) < 64 * 1024
    audio = b"".join(base64.b64decode(each["audio"]) for each in deltas)
    assert len(audio) == 2 * spoken_samples(gateway.engine, 48000)
    assert done["type"] == "speech.audio.done"
    frames = sum(frames_for(request.text) for request in gateway.engine.submitted)
    assert done["usage"]["output_tokens"] == frames
    assert done["usage"]["total_tokens"] == frames + done["usage"]["input_tokens"]


async def test_requests_on_one_connection_are_independent(gateway):
    async with ClientSession(connector=aiohttp.TCPConnector(limit=1)) as http:
        sizes, peers = [], set()
        for _ in range(2):
            async with http.post(url(gateway), json=asked(response_format="pcm")) as answer:
                peers.add(answer.connection.transport.get_extra_info("sockname"))
                sizes.append(len(await answer.read()))
    assert len(peers) == 1 and sizes[0] == sizes[1] > 0


async def test_a_voice_may_have_another_name(run_gateway, http):
    settings = Settings(voice_aliases={"alloy": "bo"})
    async with run_gateway(ScriptedEngine(), settings) as gateway:
        for voice in ("alloy", {"id": "bo"}):
            async with http.post(url(gateway), json=asked(voice=voice)) as answer:
                assert answer.status == 200
                await answer.read()
        assert {request.voice for request in gateway.engine.submitted} == {"bo"}


async def test_the_fields_of_vllm_omni_reach_the_engine(gateway, http):
    ask = {
        "input": "Hi.", "speaker": "bo", "task_type": "CustomVoice", "language": "German", "stream": True,
        "initial_codec_chunk_frames": 2, "max_new_tokens": 5, "seed": 7, "response_format": "pcm",
    }  # fmt: skip
    async with http.post(url(gateway), json=ask) as answer:
        assert answer.content_type == "text/event-stream"
        await answer.read()
    (request,) = gateway.engine.submitted
    assert (request.voice, request.initial_chunk_frames) == ("bo", 2)
    assert (request.sampling.max_new_tokens, request.sampling.seed) == (5, 7)


# Errors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        (b"{", 400, "bad_json", None),
        (b"\xff", 400, "bad_json", None),
        (b"[]", 400, "bad_message", None),
        (asked(""), 400, "bad_value", "input"),
        (asked("x" * 4097), 400, "text_too_long", "input"),
        (asked(" \U0001f642 "), 400, "bad_value", None),
        (asked(model="tts-9"), 404, "model_not_found", "model"),
        (asked(voice="nobody"), 400, "unknown_voice", None),
        (asked(speed=5), 400, "bad_value", "speed"),
        (asked(response_format="ogg"), 400, "bad_value", "response_format"),
        (asked(response_format="opus", sample_rate=24000), 400, "bad_value", "sample_rate"),
        (asked(instructions="Whisper."), 400, "bad_value", "instructions"),
        (asked(ref_audio="https://example.org/a.wav", ref_text="A."), 400, "bad_value", "ref_audio"),
        (asked(colour="red"), 400, "unknown_field", None),
    ],
)
async def test_what_is_wrong_is_said_as_openai_says_it(gateway, http, body, status, code, param):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with http.post(url(gateway), data=data) as answer:
        told = await answer.json()
    assert (answer.status, list(told)) == (status, ["error"])
    assert set(told["error"]) == {"message", "type", "param", "code"}
    assert (told["error"]["type"], told["error"]["code"]) == ("invalid_request_error", code)
    assert told["error"]["param"] == param


async def test_a_form_is_refused_in_json(gateway, http):
    async with http.post(url(gateway), data={"input": "Hello.", "voice": "ada"}) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (400, "bad_json")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/audio/speech", 405, "method_not_supported"),
        ("POST", "/v1/audio/speech/stream", 405, "method_not_supported"),
        ("POST", "/v1/models", 405, "method_not_supported"),
        ("POST", "/v1/audio/speech/batch", 404, "unknown_url"),
        ("POST", "/v1/chat/completions", 404, "unknown_url"),
    ],
)
async def test_what_there_is_not_is_said_as_openai_says_it(gateway, http, method, path, status, code):
    async with http.request(method, url(gateway, path)) as answer:
        told = (await answer.json())["error"]
    assert (answer.status, told["type"], told["code"]) == (status, "invalid_request_error", code)
    assert path in told["message"] and ("Allow" in answer.headers) == (status == 405)


async def test_a_body_that_is_too_big_is_not_taken_in(run_gateway, http):
    async with run_gateway(ScriptedEngine(), Settings(limits=Limits(config_message_bytes=1000))) as gateway:
        async with http.post(url(gateway), data=b" " * 2000) as answer:
            assert (answer.status, (await answer.json())["error"]["code"]) == (413, "message_too_big")

        async def pieces():
            for _ in range(20):
                yield b" " * 100

        async with http.post(url(gateway), data=pieces()) as answer:
            assert answer.status == 413


async def test_a_recording_that_is_none_is_refused(gateway, http):
    recording = base64.b64encode(b"no sound at all").decode()
    for ref_audio in (recording, f"data:audio/wav;base64,{recording}"):
        async with http.post(url(gateway), json=asked(ref_audio=ref_audio, ref_text="No sound.")) as answer:
            told = (await answer.json())["error"]
        assert (answer.status, told["code"]) == (400, "bad_value")
        assert told["message"].startswith("ref_audio: ")


async def test_keys_and_their_limits(run_gateway, http):
    keys = ApiKeys({"one": "sk-1", "two": "sk-2"})
    settings = Settings(keys=keys, limits=Limits(key_connections=1))
    engine = ScriptedEngine()
    engine.gate.clear()
    async with run_gateway(engine, settings) as gateway:
        for headers in ({}, {"Authorization": "Bearer sk-3"}):
            async with http.post(url(gateway), json=asked(), headers=headers) as answer:
                assert (answer.status, (await answer.json())["error"]["code"]) == (401, "invalid_api_key")
        first = asyncio.create_task(http.post(url(gateway), json=asked(), headers={"Authorization": "Bearer sk-1"}))
        await engine.until(lambda: engine.submitted)
        async with http.post(url(gateway), json=asked(), headers={"Authorization": "Bearer sk-1"}) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
            assert (await answer.json())["error"]["code"] == "rate_limit_exceeded"
        engine.gate.set()
        async with http.post(url(gateway), json=asked(), headers={"Authorization": "Bearer sk-2"}) as answer:
            assert answer.status == 200
        assert await (await first).read()


async def test_a_full_server_says_when_to_come_again(run_gateway, http):
    engine = ScriptedEngine()
    engine.gate.clear()
    settings = Settings(limits=Limits(waiting_contexts=1))
    async with run_gateway(engine, settings) as gateway:
        first = asyncio.create_task(http.post(url(gateway), json=asked()))
        await engine.until(lambda: engine.submitted)
        async with http.post(url(gateway), json=asked()) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
            told = (await answer.json())["error"]
            assert (told["type"], told["code"]) == ("server_error", "overloaded")
        engine.gate.set()
        assert await (await first).read()


async def test_a_failure_before_the_first_audio_is_a_status(run_gateway, http):
    async with run_gateway(ScriptedEngine(fail={"Hi.": (0, "engine_failed")})) as gateway:
        for fields in ({}, {"stream_format": "sse"}):
            async with http.post(url(gateway), json=asked("Hi.", **fields)) as answer:
                assert (answer.status, (await answer.json())["error"]["code"]) == (503, "engine_failed")


async def test_a_failure_later_breaks_the_body_off(run_gateway, http):
    """After what was made; no reader can take it for the whole."""
    text = "This text is the bad one."
    async with run_gateway(ScriptedEngine(fail={text: (2, "engine_failed")})) as gateway:
        async with http.post(url(gateway), json=asked(text, response_format="pcm")) as answer:
            assert answer.status == 200
            heard = b""
            with pytest.raises(aiohttp.ClientPayloadError):
                async for piece in answer.content.iter_any():
                    heard += piece
        assert len(heard) > 29 * FRAME_SAMPLES  # two bytes for each sample at about half the rate
        assert (await scrape(gateway.port))["audio8_errors_total"]["engine_failed"] == 1


async def test_a_failure_later_is_an_event(run_gateway, http):
    text = "This text is the bad one."
    ask = asked(text, stream_format="sse", response_format="pcm")
    async with (
        run_gateway(ScriptedEngine(fail={text: (2, "engine_failed")})) as gateway,
        http.post(url(gateway), json=ask) as answer,
    ):
        *deltas, last = events(await answer.read())
    assert {each["type"] for each in deltas} == {"speech.audio.delta"}
    assert (last["type"], last["error"]["code"]) == ("speech.audio.error", "engine_failed")


# Who leaves, who does not read, and the end -------------------------------------------------------------------------


@pytest.mark.parametrize("begun", [False, True])
async def test_a_client_that_leaves_frees_the_engine(run_gateway, begun):
    engine = ScriptedEngine()
    (engine.chunk_gate if begun else engine.gate).clear()
    async with run_gateway(engine) as gateway:
        async with ClientSession() as http:
            asking = asyncio.create_task(http.post(url(gateway), json=asked()))
            await engine.until(lambda: engine.submitted)
            if begun:
                await (await asking).content.readany()
            asking.cancel()
            await http.close()
        await engine.until(lambda: engine.cancelled and not engine.live)
        figures = await scrape(gateway.port)
        assert figures["audio8_contexts_ended_total"]["disconnected"] == 1
        assert sum(figures["audio8_contexts"].values()) == 0
        assert not any(value for code, value in figures["audio8_errors_total"].items())


async def raw_request(gateway: RunningGateway) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask, and take nothing of the answer by oneself."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect(("127.0.0.1", gateway.port))
    reader, writer = await asyncio.open_connection(sock=raw, limit=1024)
    body = json.dumps(asked(LONG, response_format="pcm", sample_rate=44100)).encode()
    head = f"POST /v1/audio/speech HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    return reader, writer


async def test_a_client_that_does_not_read_pauses_synthesis_and_is_cut_off(run_gateway):
    engine = ScriptedEngine()
    settings = Settings(limits=Limits(unsent_audio_s=5, write_stall_s=0.5))
    async with run_gateway(engine, settings) as gateway:
        _, writer = await raw_request(gateway)
        await engine.until(lambda: any(not granted for _, granted in engine.credits))
        await engine.until(lambda: engine.cancelled and not engine.live)
        assert (await scrape(gateway.port))["audio8_errors_total"]["slow_consumer"] == 1
        writer.transport.abort()


async def test_a_client_that_reads_slowly_gets_all_of_it(run_gateway):
    engine = ScriptedEngine()
    async with run_gateway(engine, Settings(limits=Limits(unsent_audio_s=5))) as gateway:
        reader, writer = await raw_request(gateway)
        await engine.until(lambda: any(not granted for _, granted in engine.credits))
        size, piece = 0, b""
        async with asyncio.timeout(PATIENCE_S):
            while not piece.endswith(b"\r\n0\r\n\r\n"):
                piece = await reader.read(1 << 16)
                assert piece
                size += len(piece)
        assert size > 2 * spoken_samples(engine, 44100)
        writer.close()


async def test_at_the_end_of_the_server_a_request_may_end_first(run_gateway, http):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, http.post(url(gateway), json=asked(response_format="pcm")) as answer:
        heard = await answer.content.readany()
        ending = asyncio.create_task(wind_down(gateway.runner.app, PATIENCE_S))
        await asyncio.sleep(0)
        async with ClientSession() as other, other.post(url(gateway), json=asked()) as late:
            assert (late.status, (await late.json())["error"]["code"]) == (503, "shutting_down")
        engine.chunk_gate.set()
        heard += await answer.read()
        await ending
        assert len(heard) == 2 * spoken_samples(engine, 24000)


async def test_what_is_not_over_in_time_is_broken_off(run_gateway, http):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, http.post(url(gateway), json=asked()) as answer:
        await answer.content.readany()
        await wind_down(gateway.runner.app, 0.01)
        await shut_down(gateway.runner.app)
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()
        assert not engine.live


async def test_requests_are_counted(run_gateway, http):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, http.post(url(gateway), json=asked()) as answer:
        await answer.content.readany()
        figures = await scrape(gateway.port)
        assert figures["audio8_connections"][""] == 1
        assert sum(figures["audio8_contexts"].values()) == 1
        engine.chunk_gate.set()
        size = len(await answer.read())
        figures = await scrape(gateway.port)
        assert figures["audio8_connections"][""] == 0
        assert figures["audio8_contexts_ended_total"]["done"] == 1
        assert figures["audio8_sent_bytes_total"][""] >= size


# Models -------------------------------------------------------------------------------------------------------------


async def test_models(gateway, http):
    async with http.get(url(gateway, "/v1/models")) as answer:
        told = await answer.json()
    assert (told["object"], [each["id"] for each in told["data"]]) == ("list", ["scripted"])
    assert {"id", "object", "created", "owned_by"} == set(told["data"][0])
    for name in ("scripted", "tts-1", "some-owner/scripted"):
        async with http.get(url(gateway, f"/v1/models/{name}")) as answer:
            assert (answer.status, (await answer.json())["id"]) == (200, name)
    async with http.get(url(gateway, "/v1/models/other")) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/tts-1"])
async def test_models_need_a_key_too(run_gateway, http, path):
    async with (
        run_gateway(ScriptedEngine(), Settings(keys=ApiKeys({"one": "sk-1"}))) as gateway,
        http.get(url(gateway, path)) as answer,
    ):
        assert (answer.status, (await answer.json())["error"]["code"]) == (401, "invalid_api_key")
