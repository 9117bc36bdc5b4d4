"""ElevenLabs' requests in a running gateway: fields, formats, times, voices, and how refusals read."""

from __future__ import annotations

import base64
import json
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession
from scripted_engine import ScriptedEngine
from tones import ToneEngine, seconds

from gateway.keys import ApiKeys
from gateway.settings import Settings

ADA = "/v1/text-to-speech/ada"
SENTENCE = "Hello there."


@asynccontextmanager
async def asked(gateway, path: str, body: object = None, method: str = "POST", headers: dict | None = None, **query):
    url, told = f"http://127.0.0.1:{gateway.port}{path}", {} if body is None else {"json": body}
    async with ClientSession() as http, http.request(method, url, params=query, headers=headers, **told) as answer:
        yield answer


async def refused(gateway, path: str = ADA, body: object = None, **options) -> tuple[int, str, str]:
    """(HTTP status, their status, message)."""
    async with asked(gateway, path, body, **options) as answer:
        detail = (await answer.json())["detail"]
        assert set(detail) == {"status", "message"}
        return answer.status, detail["status"], detail["message"]


@pytest.mark.parametrize(
    ("name", "kind", "begin"),
    [
        (None, "audio/mpeg", b"\xff"),
        ("mp3_22050_32", "audio/mpeg", b"\xff"),
        ("opus_48000_64", "audio/ogg", b"OggS"),
        ("wav_16000", "audio/wav", b"RIFF"),
    ],
)
async def test_each_format_has_its_type(gateway, name, kind, begin):
    async with asked(gateway, ADA, {"text": SENTENCE}, **({"output_format": name} if name else {})) as answer:
        assert answer.content_type == kind and (await answer.read()).startswith(begin)


@pytest.mark.parametrize(("name", "bytes_a_second"), [("pcm_16000", 32000), ("ulaw_8000", 8000), ("alaw_8000", 8000)])
async def test_samples_have_their_rate(run_gateway, name, bytes_a_second):
    async with (
        run_gateway(ToneEngine(frames=lambda text: 20)) as gateway,
        asked(gateway, f"{ADA}/stream", {"text": SENTENCE}, output_format=name) as answer,
    ):
        assert len(await answer.read()) == pytest.approx(seconds(20) * bytes_a_second, abs=2)


async def test_what_is_taken_and_what_is_passed_over(gateway):
    body = {
        "text": SENTENCE,
        "model_id": "eleven_flash_v2_5",
        "language_code": "en",
        "voice_settings": {"stability": 0.5, "similarity_boost": 0.7, "style": 0, "use_speaker_boost": True},
        "seed": 7,
        "previous_text": "Before.",
        "next_text": "After.",
        "previous_request_ids": [],
        "apply_text_normalization": "off",
        "pronunciation_dictionary_locators": [],
    }
    async with asked(gateway, ADA, body, enable_logging="false", optimize_streaming_latency="3") as answer:
        assert answer.status == 200 and await answer.read()
    (request,) = gateway.engine.submitted
    assert (request.voice, request.text) == ("ada", SENTENCE)


@pytest.mark.parametrize(
    ("change", "query", "why"),
    [
        ({"text": " "}, {}, "text must be a string that is not empty"),
        ({"seed": -1}, {}, "seed must be an integer from 0 to 4294967295; got -1"),
        ({"voice_settings": {"speed": 3}}, {}, "voice_settings.speed must be a number from 0.7 to 1.2; got 3"),
        ({"language_code": "xx"}, {}, "language must be one of"),
        ({"apply_text_normalization": ["on"]}, {}, "apply_text_normalization must be auto, on, off; got a list"),
        ({"audio_effects": {"distance": 1}}, {}, "audio_effects is not supported"),
        ({"pronunciation_dictionary_locators": [{}]}, {}, "pronunciation_dictionary_locators is not supported"),
        ({"pitch": 2}, {}, "unknown field 'pitch'; known fields: text, language_code"),
        ({}, {"format": "mp3"}, "unknown parameter 'format'; known parameters: output_format"),
        ({}, {"output_format": "pcm_11025"}, "output_format must be one of pcm_8000"),
    ],
)
async def test_what_cannot_be_is_named(gateway, change, query, why):
    status, _, message = await refused(gateway, body={"text": SENTENCE} | change, **query)
    assert status == 400 and message.startswith(why)


async def test_refusals_are_in_their_words(run_gateway):
    settings = Settings(keys=ApiKeys({"phone": "k3y"}))
    key = {"headers": {"xi-api-key": "k3y"}}
    failing = ScriptedEngine(fail={"It fails.": (0, "engine_failed")})
    async with run_gateway(failing, settings) as gateway:
        unknown = await refused(gateway, body={"text": "Hi."})
        assert unknown[:2] == (401, "invalid_api_key")
        assert (await refused(gateway, "/v1/voices", method="GET"))[:2] == (401, "invalid_api_key")
        voice = await refused(gateway, "/v1/text-to-speech/nobody", {"text": "Hi."}, **key)
        assert voice[:2] == (404, "voice_not_found") and "ada, bo" in voice[2]
        assert (await refused(gateway, "/v1/voices/nobody", method="GET", **key))[:2] == (404, "voice_not_found")
        assert (await refused(gateway, body={"text": "It fails."}, **key))[:2] == (503, "engine_failed")
        assert (await refused(gateway, f"{ADA}/with-timestamps", {"text": "It fails."}, **key))[0] == 503
        assert (await refused(gateway, "/v1/history", method="GET", **key))[:2] == (404, "not_found")
        assert (await refused(gateway, method="DELETE", **key))[:2] == (405, "not_found")


@pytest.mark.parametrize("name", ["pcm_16000", "mp3_44100_128"])
@pytest.mark.parametrize("kind", ["with-timestamps", "stream/with-timestamps"])
async def test_times_of_characters(run_gateway, kind, name):
    text = "Hello there. And once more."
    async with (
        run_gateway(ToneEngine(frames=lambda text: 20)) as gateway,
        asked(gateway, f"{ADA}/{kind}", {"text": text}, output_format=name) as answer,
    ):
        assert answer.content_type == "application/json"
        lines = [json.loads(line) for line in (await answer.text()).splitlines()]
    assert (len(lines) == 1) == (kind == "with-timestamps")
    spoken = seconds(20) * len(gateway.engine.submitted)
    if name.startswith("pcm"):
        assert sum(len(base64.b64decode(line["audio_base64"])) for line in lines) == pytest.approx(
            spoken * 32000, abs=4
        )
    told = [line["alignment"] for line in lines if line["alignment"]]
    assert "".join(character for part in told for character in part["characters"]).rstrip() == text
    starts, ends = (
        [time for part in told for time in part[f"character_{which}_times_seconds"]] for which in ("start", "end")
    )
    assert starts[0] == 0 and starts == sorted(starts) and ends[-1] == pytest.approx(spoken, abs=0.1)


async def test_voices(run_gateway):
    async with run_gateway(ScriptedEngine(), Settings(voice_aliases={"21m00": "bo"})) as gateway:

        async def got(path: str, **query: str) -> dict:
            async with asked(gateway, path, method="GET", **query) as answer:
                assert answer.status == 200
                return await answer.json()

        voices = (await got("/v1/voices"))["voices"]
        assert [voice["voice_id"] for voice in voices] == ["ada", "bo"]
        assert {voice["category"] for voice in voices} == {"premade"}
        assert await got("/v1/voices/21m00") == voices[1]
        first = await got("/v2/voices", page_size="1")
        assert (first["voices"], first["has_more"], first["total_count"]) == (voices[:1], True, 2)
        second = await got("/v2/voices", page_size="1", next_page_token=first["next_page_token"])
        assert (second["voices"], second["has_more"], second["next_page_token"]) == (voices[1:], False, None)
        assert (await got("/v2/voices", search="BO", category="premade"))["voices"] == voices[1:]
        assert (await got("/v2/voices", voice_ids="ada"))["voices"] == voices[:1]
        assert (await got("/v2/voices", category="cloned"))["voices"] == []
        status, _, message = await refused(gateway, "/v2/voices", method="GET", accent="x")
        assert status == 400 and "unknown parameter 'accent'" in message
        assert "page_size must be" in (await refused(gateway, "/v2/voices", method="GET", page_size="0"))[2]
