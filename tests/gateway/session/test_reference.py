"""A session brings its voice along: `ref_audio` and `ref_text`."""

from __future__ import annotations

import asyncio
import base64

import numpy as np
import pytest
from recordings import sound_file, speech, wav

from gateway.errors import Overloaded
from gateway.voices.coder import VoiceCoder

TEXT = "What was said."


def reference(audio: bytes) -> dict[str, str]:
    return {"ref_audio": "data:audio/wav;base64," + base64.b64encode(audio).decode(), "ref_text": TEXT}


async def test_contexts_wait_for_the_recording_and_the_session_does_not(gateway):
    gateway.engine.encode_gate.clear()
    async with await gateway.client() as client:
        await client.say("session.config", **reference(wav(speech())))
        configured = await client.until("session.configured")
        assert configured["config"]["ref_audio"].startswith("sha256:") and configured["config"]["voice"] is None
        await client.speak("Hello there.", context_id="a")
        await client.speak("Another voice.", context_id="b", voice="bo")
        await client.pong()  # answered while the recording is being encoded
        await gateway.engine.until(lambda: gateway.engine.encoding)
        assert gateway.engine.submitted == []
        gateway.engine.encode_gate.set()
        assert [(await client.whole(name)).end["type"] for name in "ab"] == ["session.done"] * 2
        assert [request.voice for request in gateway.engine.submitted] == [None, "bo"]
        assert gateway.engine.submitted[0].reference.text == TEXT
        await client.say("session.config", ref_audio=None)
        await client.speak("The default.", context_id="c")
        await client.whole("c")
        assert gateway.engine.submitted[-1].voice == "ada"


async def test_the_same_recording_is_encoded_once(gateway):
    async with await gateway.client() as one, await gateway.client() as other:
        for client in (one, other):
            await client.say("session.config", **reference(wav(speech())))
            await client.speak("Hello there.", context_id="a")
        for client in (one, other):
            assert (await client.whole("a")).end["type"] == "session.done"
        await other.say("session.config", **reference(sound_file(speech(), "FLAC")))
        await other.speak("Hello there.", context_id="b")
        await other.whole("b")
    assert len(gateway.engine.encoded) == 2
    first, second = (request.reference.codes for request in gateway.engine.submitted[:2])
    np.testing.assert_array_equal(first, second)


async def test_a_bad_recording_is_told_and_its_contexts_fail_by_name(gateway):
    async with await gateway.client() as client:
        await client.say("session.config", **reference(wav(np.zeros(100_000))))
        await client.speak("Hello there.", context_id="a")
        failed = (await client.whole("a")).end
        assert (failed["code"], failed["type"]) == ("bad_value", "error")
        assert failed["message"].startswith("ref_audio: the recording is silent")
        refused = [message for message in client.others if message["type"] == "error"]
        assert [(each["message"], each["fatal"]) for each in refused] == [(failed["message"], False)]
        await client.speak("Hello again.", context_id="b")
        assert (await client.whole("b")).end["message"] == failed["message"]
        await client.speak("By name.", context_id="c", voice="bo")
        assert (await client.whole("c")).end["type"] == "session.done"
        await client.say("session.config", **reference(wav(speech())))
        await client.speak("Better.", context_id="d")
        assert (await client.whole("d")).end["type"] == "session.done"
    assert gateway.engine.encoded == [len(speech())]


async def test_a_client_that_leaves_or_cancels_in_the_meantime_leaves_nothing(gateway):
    gateway.engine.encode_gate.clear()
    async with await gateway.client() as client:
        await client.say("session.config", **reference(wav(speech())))
        await client.say("input.text", text="Hello there.", context_id="a")
        await client.say("input.cancel", context_id="a")
        assert (await client.whole("a")).end["type"] == "input.cancelled"
        await client.say("input.text", text="Hello there.", context_id="b")
        await client.pong()
    gateway.engine.encode_gate.set()
    async with await gateway.client() as client:
        await client.say("session.config", **reference(wav(speech())))
        await client.speak("Hello there.")
        assert (await client.whole("_0")).end["type"] == "session.done"
    assert len(gateway.engine.encoded) == 1 and len(gateway.engine.submitted) == 1


async def test_what_waits_to_be_encoded_is_bounded(gateway, monkeypatch):
    monkeypatch.setattr("gateway.voices.coder._MOST_WAITING", 1)
    gateway.engine.encode_gate.clear()
    coder = VoiceCoder(gateway.engine)
    first = asyncio.create_task(coder.reference(wav(speech()), TEXT))
    await gateway.engine.until(lambda: gateway.engine.encoding)
    with pytest.raises(Overloaded, match="wait to be encoded"):
        await coder.reference(wav(speech("milo")), TEXT)
    gateway.engine.encode_gate.set()
    assert (await first).text == TEXT
