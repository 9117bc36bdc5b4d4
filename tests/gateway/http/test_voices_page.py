"""Voices over HTTP: upload, list, delete; what is refused leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from aiohttp import ClientSession, FormData
from recordings import RATE, speech, wav
from scripted_engine import ScriptedEngine

from gateway.keys import ApiKeys
from gateway.settings import Settings
from protocol.limits import Limits

MODEL = "scripted"


def fields(**changes: object) -> dict[str, object]:
    """A form that is in order."""
    return {"name": "cleo", "audio_sample": wav(speech()), "ref_text": "What was said.", "consent": "true"} | changes


def form(**changes: object) -> FormData:
    data = FormData(default_to_multipart=True)
    for name, value in fields(**changes).items():
        if value is not None:
            data.add_field(name, value, filename="sample" if isinstance(value, bytes) else None)
    return data


@dataclass
class Voices:
    """The endpoint of a gateway."""

    http: ClientSession
    url: str
    directory: Path

    async def upload(self, data: object = None, headers: dict | None = None, **changes: object) -> tuple[int, dict]:
        data = data if data is not None else form(**changes)
        async with self.http.post(self.url, data=data, headers=headers) as answer:
            return answer.status, await answer.json()

    async def names(self) -> list[str]:
        async with self.http.get(self.url) as answer:
            assert answer.status == 200
            return [voice["name"] for voice in (await answer.json())["voices"]]

    async def delete(self, name: str) -> int:
        async with self.http.delete(f"{self.url}/{name}") as answer:
            return answer.status

    @property
    def files(self) -> list[str]:
        return sorted(str(file.relative_to(self.directory)) for file in self.directory.rglob("*") if file.is_file())


@pytest.fixture
def run_voices(run_gateway, tmp_path):
    """`async with run_voices(…settings) as (gateway, voices)`, always over the same directory."""

    @asynccontextmanager
    async def running(engine: ScriptedEngine | None = None, **settings: object):
        directory = tmp_path / "voices"
        async with (
            run_gateway(engine or ScriptedEngine(), Settings(voices_dir=directory, **settings)) as gateway,
            ClientSession() as http,
        ):
            yield gateway, Voices(http, f"http://127.0.0.1:{gateway.port}/v1/audio/voices", directory)

    return running


async def spoken_with(gateway, voice: str):
    """The request that a context with this voice makes."""
    async with await gateway.client() as client:
        await client.say("input.text", text="Hello there.", voice=voice)
        await client.say("input.done")
        heard = await client.whole("_0")
    assert heard.end["type"] == "session.done"
    return gateway.engine.submitted[-1]


async def test_an_uploaded_voice_speaks_at_once_and_after_a_restart(run_voices):
    async with run_voices() as (gateway, voices):
        async with await gateway.client() as early:
            assert await voices.names() == ["ada", "bo"]
            status, told = await voices.upload(language="de", description="a friend")
            assert status == 201
            assert (told["id"], told["name"], told["language"], told["origin"]) == ("cleo", "cleo", "de", "uploaded")
            assert told["seconds"] == pytest.approx(len(speech()) / RATE, abs=0.05)
            await early.say("input.text", text="Hello there.", voice="cleo")  # on a connection that is older than it
            await early.say("input.done")
            assert (await early.whole("_0")).end["type"] == "session.done"
        assert gateway.engine.encoded == [len(speech())]
        assert [voice.text for voice in gateway.engine.kept] == ["What was said."]
        request = await spoken_with(gateway, "cleo")
        assert request.voice is None and request.reference.text == "What was said."
        first = request.reference.codes
        assert (await spoken_with(gateway, "ada")).voice == "ada"
    assert voices.files == [f"{MODEL}/cleo.json", f"{MODEL}/cleo.safetensors"]
    async with run_voices() as (gateway, voices):
        assert await voices.names() == ["ada", "bo", "cleo"]
        async with await gateway.client() as client:
            assert client.ready["voices"][-1] == {"name": "cleo", "language": "de", "description": "a friend"}
        np.testing.assert_array_equal((await spoken_with(gateway, "cleo")).reference.codes, first)
        assert gateway.engine.encoded == []
        assert await voices.delete("cleo") == 204
        assert await voices.names() == ["ada", "bo"] and voices.files == []
        assert await voices.delete("cleo") == 404
        assert await voices.delete("ada") == 409
    async with run_voices() as (_, voices):
        assert await voices.names() == ["ada", "bo"]


async def test_a_context_keeps_the_voice_that_is_deleted(run_voices):
    async with run_voices() as (gateway, voices), await gateway.client() as client:
        await voices.upload()
        await client.say("session.config", voice="cleo")
        await client.say("input.text", text="One sentence. ")
        await gateway.engine.until(lambda: gateway.engine.submitted)
        assert await voices.delete("cleo") == 204
        await client.say("input.text", text="Another sentence.")
        await client.say("input.done")
        assert (await client.whole("_0")).end["type"] == "session.done"
        assert [request.reference is not None for request in gateway.engine.submitted] == [True, True]
        await client.say("input.text", text="One more.")
        assert (await client.whole("_1")).end["code"] == "unknown_voice"


REFUSED = {
    "no name": ({"name": None}, 400, "name is needed"),
    "no transcript": ({"ref_text": None}, 400, "ref_text is needed"),
    "an empty transcript": ({"ref_text": " \n"}, 400, "ref_text must be"),
    "a long transcript": ({"ref_text": "word " * 300}, 400, "ref_text must"),
    "no consent": ({"consent": None}, 400, "consent is needed"),
    "refused consent": ({"consent": "false"}, 400, "consent must"),
    "no recording": ({"audio_sample": None}, 400, "audio_sample is needed"),
    "an empty recording": ({"audio_sample": b""}, 400, "audio_sample: the file is empty"),
    "text": ({"audio_sample": b"Hello there." * 99}, 400, "audio_sample: the file is no WAV"),
    "too short": ({"audio_sample": wav(speech()[:22050])}, 400, "audio_sample: the recording is 0.50 s"),
    "too big": ({"audio_sample": bytes(2**20 + 1)}, 413, "audio_sample must be at most 1048576 bytes"),
    "far too big": ({"audio_sample": bytes(2**22)}, 413, "audio_sample must be at most 1048576 bytes"),
    "a path": ({"name": "../cleo"}, 400, "name must match"),
    "an absolute path": ({"name": "/etc/cleo"}, 400, "name must match"),
    "a hidden file": ({"name": ".cleo"}, 400, "name must match"),
    "another alphabet": ({"name": "clеo"}, 400, "name must match"),
    "a name of the model": ({"name": "ada"}, 409, "name: a voice is called 'ada'"),
    "the same in capitals": ({"name": "ADA"}, 409, "name: a voice is called 'ADA'"),
    "an unknown language": ({"language": "xx"}, 400, "language must be one of"),
    "an unknown field": ({"colour": "red"}, 400, "there is no field 'colour'"),
}


async def test_what_is_refused_is_told_by_name_and_leaves_nothing(run_voices):
    async with run_voices(limits=Limits(voice_bytes=2**20)) as (gateway, voices):
        for kind, (changes, status, message) in REFUSED.items():
            got, told = await voices.upload(**changes)
            assert (got, told["type"]) == (status, "error"), kind
            assert told["message"].startswith(message), kind
        assert (await voices.upload(data=b"{}", headers={"Content-Type": "application/json"}))[0] == 400
        broken = {"Content-Type": "multipart/form-data; boundary=x"}
        assert (await voices.upload(data=b"--y\r\nno", headers=broken))[0] == 400
        assert (await voices.upload(data=b"--x\r\n\r\nhi\r\n--x--\r\n", headers=broken))[0] == 400
        assert await voices.names() == ["ada", "bo"] and voices.files == [] and gateway.engine.encoded == []
        twice = form()
        twice.add_field("name", "cleo")
        assert (await voices.upload(data=twice))[1]["message"] == "name is given twice"


async def test_a_name_is_given_once(run_voices):
    async with run_voices() as (gateway, voices):
        gateway.engine.encode_gate.clear()
        uploads = [asyncio.create_task(voices.upload(name=name)) for name in ("cleo", "Cleo", "dan")]
        gateway.engine.encode_gate.set()
        assert sorted(status for status, _ in await asyncio.gather(*uploads)) == [201, 201, 409]
        assert len(gateway.engine.encoded) == 1  # the same recording: encoded once
        assert len(await voices.names()) == 4


async def test_a_voice_that_cannot_be_encoded_or_written_leaves_nothing(run_voices, tmp_path):
    async with run_voices(limits=Limits(voices=1)) as (gateway, voices):
        gateway.engine.encode_gate.clear()
        upload = asyncio.create_task(voices.upload())
        await gateway.engine.until(lambda: gateway.engine.encoding)
        gateway.engine.ready = False
        gateway.engine.encode_gate.set()
        assert (await upload)[0] == 503
        gateway.engine.ready = True
        assert await voices.names() == ["ada", "bo"] and voices.files == []
        voices.directory.write_text("this is no directory")
        status, told = await voices.upload()
        assert (status, told["code"]) == (500, "internal")
        assert await voices.names() == ["ada", "bo"]
        voices.directory.unlink()
        assert (await voices.upload())[0] == 201
        status, told = await voices.upload(name="dan")
        assert status == 409 and "limit" in told["message"]


async def test_damaged_and_unfinished_files_are_no_voices(run_voices):
    async with run_voices() as (_, voices):
        for name in ("cleo", "dan", "eve"):
            await voices.upload(name=name)
    directory = voices.directory / MODEL
    (directory / "cleo.safetensors").write_bytes(b"broken")
    (directory / "dan.json").unlink()
    (directory / "fay.12345678.new").write_bytes(b"half")
    values = json.loads((directory / "eve.json").read_text())
    (directory / "no name.json").write_text(json.dumps(values))
    async with run_voices() as (_, voices):
        assert await voices.names() == ["ada", "bo", "eve"]
        assert not list(directory.glob("*.new"))
        assert (await voices.upload(name="cleo"))[0] == 201
    async with run_voices() as (_, voices):
        assert await voices.names() == ["ada", "bo", "cleo", "eve"]


async def test_with_keys_only_their_owners_see_voices(run_voices):
    async with run_voices(keys=ApiKeys({"alice": "secret"})) as (_, voices):
        status, told = await voices.upload()
        assert (status, told["code"]) == (401, "unauthorized")
        assert await voices.delete("cleo") == 401
        async with voices.http.get(voices.url) as answer:
            assert answer.status == 401
        key = {"Authorization": "Bearer secret"}
        assert (await voices.upload(headers=key))[0] == 201
        assert json.loads((voices.directory / MODEL / "cleo.json").read_text())["owner"] == "alice"
        foreign = key | {"Origin": "https://elsewhere.example"}
        assert (await voices.upload(headers=foreign, name="dan"))[0] == 403
