"""Whatever a client sends, it gets the documented answer, and another client's stream goes on."""

from __future__ import annotations

import asyncio

import pytest
from scripted_engine import FRAME_SAMPLES, ScriptedEngine, frames_for
from websockets.exceptions import ConnectionClosed

LONG = "A sentence of some length that goes on, and on, and on. " * 4

REFUSED = [
    ("not json", "bad_json"),
    ('{"type": "input.text", "text": "cut', "bad_json"),
    ('{"type": "session.config", "top_p": NaN}', "bad_json"),
    ("[" * 100_000, "bad_json"),
    ("[]", "bad_message"),
    ("null", "bad_message"),
    ('"x"', "bad_message"),
    ('{"type": 5}', "bad_message"),
    ("{}", "bad_message"),
    ('{"type": "text"}', "unknown_type"),
    ('{"type": "input.text"}', "bad_message"),
    ('{"type": "input.text", "text": 7}', "bad_value"),
    ('{"type": "input.text", "text": null}', "bad_value"),
    ('{"type": "input.text", "text": "a", "speed": 2}', "unknown_field"),
    ('{"type": "input.text", "text": "a", "context_id": "_1"}', "bad_value"),
    ('{"type": "input.text", "text": "a", "seed": -1}', "bad_value"),
    ('{"type": "input.cancel", "playback_offset_ms": 5}', "bad_message"),
    ('{"type": "session.config", "voice": "nobody"}', "unknown_voice"),
    ('{"type": "session.config", "colour": "red"}', "unknown_field"),
    ('{"type": "session.config", "response_format": "ogg"}', "bad_value"),
    ('{"type": "session.config", "ref_audio": "data:audio/wav;base64,AA=="}', "bad_value"),
    ('{"type": "session.config", "ref_text": "what was said"}', "bad_value"),
    ('{"type": "session.config", "ref_audio": "http://127.0.0.1/voice.wav", "ref_text": "what was said"}', "bad_value"),
    ('{"type": "input.text", "text": "' + "x" * 10_000 + '"}', "text_too_long"),
]


@pytest.mark.parametrize(
    ("message", "code"), REFUSED, ids=[f"{code}-{index}" for index, (_, code) in enumerate(REFUSED)]
)
async def test_refusals_change_nothing_and_others_go_on(run_gateway, message, code):
    engine = ScriptedEngine()
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, await gateway.client() as other, await gateway.client() as client:
        await other.speak(LONG)
        await other.until_audio()
        await client.socket.send(message)
        error = await client.until("error", code=code)
        assert error["fatal"] is False and "context_id" not in error and len(error["message"]) < 1000
        engine.chunk_gate.set()
        await client.speak("Fine.")
        heard = await client.whole("_0")
        assert heard.end["reason"] == "done" and heard.audio
        spoken = (await other.whole("_0")).all("audio.segment")
        assert other.contexts["_0"].text == LONG
        assert len(other.contexts["_0"].audio) == 2 * FRAME_SAMPLES * sum(frames_for(s["spoken"]) for s in spoken)


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t", "👍", "😀😀😀", "\u200b", "\ufeff", "\u00a0", " 👍 \n"])
async def test_nothing_to_speak_is_an_empty_utterance(run_gateway, text):
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.speak(text)
        heard = await client.whole("_0")
        assert heard.types == ["session.done"]
        assert heard.end["usage"] == {
            "input_characters": len(text), "input_tokens": 0, "audio_frames": 0, "audio_ms": 0.0
        }  # fmt: skip
        assert not engine.submitted
        await client.speak("Fine.")
        assert (await client.whole("_1")).audio


async def test_text_around_unspeakable_text_is_still_verbatim(gateway):
    text = "👍 Here is a sentence that speaks. 😀 "
    async with await gateway.client() as client:
        await client.speak(text)
        heard = await client.whole("_0")
    assert heard.text == text
    assert [segment["segment_index"] for segment in heard.all("audio.segment")] == list(
        range(len(heard.all("audio.segment")))
    )


async def test_an_unknown_voice_ends_the_context_that_it_opens(gateway):
    async with await gateway.client() as client:
        await client.say("input.text", text="Hello.", context_id="a", voice="nobody")
        heard = await client.whole("a")
        assert heard.types == ["error"]
        assert heard.end["code"] == "unknown_voice" and "ada, bo" in heard.end["message"]
        await client.say("input.text", text="More.", context_id="a")
        await client.until("error", code="context_ended", about_context_id="a")


@pytest.mark.parametrize(
    ("message", "code", "close"),
    [
        (b'{"type": "session.ping"}', "protocol_error", 1003),
        (b"", "protocol_error", 1003),
        ("x" * 200_000, "message_too_big", 1009),
    ],
    ids=["binary", "empty binary", "too big"],
)
async def test_what_breaks_the_protocol_closes_the_socket(gateway, message, code, close):
    async with await gateway.client() as client:
        await client.say("input.text", text="Hello", context_id="a")
        await client.socket.send(message)
        error = await client.until("error", code=code)
        assert error["fatal"] is True
        assert client.contexts["a"].types == ["input.cancelled"]
        with pytest.raises(ConnectionClosed) as closed:
            await client.receive()
        assert closed.value.rcvd.code == close


async def test_text_that_is_not_utf8_closes_the_socket(gateway):
    async with await gateway.client() as client:
        await client.socket.send(b"\xff\xfe", text=True)
        await client.until("error", code="protocol_error", fatal=True)
        with pytest.raises(ConnectionClosed) as closed:
            await client.receive()
        assert closed.value.rcvd.code == 1007


@pytest.mark.parametrize("fragments", [1, 9])
async def test_a_message_beyond_all_limits_closes_the_socket(gateway, fragments):
    """Not even taken in: the error comes while the client is still sending."""
    async with await gateway.client() as client:
        await client.say("input.text", text="Hello", context_id="a")
        message = "x" * 9_000_000
        sending = asyncio.create_task(client.socket.send(message if fragments == 1 else [message[:1_000_000]] * 9))
        error = await client.until("error", code="message_too_big")
        assert error["fatal"] is True and "8388608" in error["message"]
        assert client.contexts["a"].types == ["input.cancelled"]
        with pytest.raises(ConnectionClosed) as closed:
            await client.receive()
        assert closed.value.rcvd.code == 1009
        await asyncio.gather(sending, return_exceptions=True)


async def test_halves_of_a_character_meet(gateway):
    async with await gateway.client() as client:
        await client.socket.send('{"type": "input.text", "text": "Hello \\ud83d"}')
        await client.socket.send('{"type": "input.text", "text": "\\ude00 there \\ud83d"}')
        await client.say("input.done")
        heard = await client.whole("_0")
    assert heard.text == "Hello \N{GRINNING FACE} there \N{REPLACEMENT CHARACTER}"
    assert not {"\N{GRINNING FACE}", "\N{REPLACEMENT CHARACTER}"} & set(
        "".join(s["spoken"] for s in heard.all("audio.segment"))
    )


async def test_a_flood_of_text_is_bounded_and_a_cancel_is_still_heard(run_gateway):
    engine = ScriptedEngine()
    engine.gate.clear()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        for _ in range(9000):
            await client.say("input.text", text="a ", context_id="a")
        await client.say("input.cancel", context_id="a")
        cancelled = await client.until("input.cancelled", context_id="a")
    refused = [message for message in client.others if message["code"] == "text_too_long"]
    assert refused and 2 * (9000 - len(refused)) == len(cancelled["text_remaining"])


async def test_a_client_that_sends_without_reading_does_not_lock_up(run_gateway, gateway):
    """More answers than may wait: the reader stops until the client reads, then all is answered in order."""
    async with await gateway.client(max_queue=1) as client:
        pings = 20_000
        sending = asyncio.create_task(_ping_many(client, pings))
        for number in range(pings):
            assert (await client.receive())["id"] == str(number)
        await sending


async def _ping_many(client, count):
    for number in range(count):
        await client.say("session.ping", id=str(number))
