"""Text as it really arrives: nothing to speak, pieces of words, silence in the middle, settings at the wrong time."""

from __future__ import annotations

import time

import pytest
from scripted_engine import ScriptedEngine, frames_for

QUIET = [["..."], ["!?"], ["—"], ["```"], ["** **"], ["\u200b"], ["\n\n"], [""] * 10, []]


@pytest.mark.parametrize("pieces", QUIET, ids=[ascii("".join(pieces)) for pieces in QUIET])
async def test_a_turn_without_speech_ends_like_any_other(run_gateway, pieces):
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        for piece in pieces:
            await client.say("input.text", text=piece)
        await client.say("input.done")
        heard = await client.whole("_0")
        assert heard.types == ["session.done"] and heard.end["reason"] == "done"
        assert not engine.submitted and not client.others
        await client.speak("Fine.")
        assert (await client.whole("_1")).audio


@pytest.mark.parametrize(
    ("pieces", "spoken"),
    [
        (["What", " ", "is", " ", "the", " ", "weather", "?"], "What is the weather?"),
        (["What is ", "the weather?"], "What is the weather?"),
        (["\n\n", "What is the weather?"], "What is the weather?"),
        (list("What is the weather?"), "What is the weather?"),
        (["Visit exam", "ple.", "com now"], "Visit example dot com now"),
        (["Perfect, 12345.", "Let me check."], "Perfect, 12345.Let me check."),  # whose space is missing adds it
        ([" 기", "\ufffd", "\ufffd니다."], "기 니다."),
    ],
)
async def test_pieces_are_joined_as_they_are(run_gateway, pieces, spoken):
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.say("session.config", split_granularity="none")
        for piece in pieces:
            await client.say("input.text", text=piece)
        await client.say("input.done")
        heard = await client.whole("_0")
    assert heard.text == "".join(pieces)
    assert [request.text for request in engine.submitted] == [spoken]


@pytest.mark.parametrize(
    ("preparation", "spoken"),
    [
        ("full", "It is three dollars, fifty cents, really."),
        ("markup", "It is $3.50, really."),
        ("none", "It is **$3.50**, [really](https://a.b)."),
    ],
)
async def test_how_far_text_is_prepared_is_the_clients_choice(run_gateway, preparation, spoken):
    engine = ScriptedEngine()
    text = "It is **$3.50**, [really](https://a.b)."
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.say("session.config", text_preparation=preparation, language="en", split_granularity="none")
        for character in text:
            await client.say("input.text", text=character)
        await client.say("input.done")
        heard = await client.whole("_0")
    assert heard.text == text
    assert [request.text for request in engine.submitted] == [spoken]


async def test_settings_hold_for_a_whole_turn(run_gateway):
    """Refused in the middle of one, with the text intact; empty text is no beginning; ids count the turns."""
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.say("input.text", text="First one. Second")
        await client.say("session.config", voice="bo")
        await client.until("error", code="config_locked")
        await client.say("input.text", text=" one.")
        await client.say("input.done")
        first = await client.whole("_0")
        await client.say("input.text", text="")
        await client.say("session.config", voice="bo")
        await client.until("session.configured")
        await client.speak("The other voice.")
        await client.speak("And again.")
        turns = [first, await client.whole("_1"), await client.whole("_2")]
    assert first.text == "First one. Second one."
    assert [turn.end["utterance_index"] for turn in turns] == [0, 1, 2]
    assert [request.voice for request in engine.submitted] == ["ada", "ada", "bo", "bo"]


async def test_a_stalled_source_of_text_holds_no_place_in_the_engine(run_gateway):
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.say("input.text", text="I will look that up. Please hold")
        await client.until_audio()
        await engine.until(lambda: len(engine.completed) == 1)
        assert not engine.live
        await client.say("input.text", text=" on. Found it.")
        await client.say("input.done")
        heard = await client.whole("_0")
    spoken = [segment["spoken"] for segment in heard.all("audio.segment")]
    assert spoken == ["I will look that up.", "Please hold on.", "Found it."]


async def test_every_kind_of_turn_ends_once_and_in_order(run_gateway):
    """Empty, of one frame, of exactly the first two chunks, failing, cancelled: fifty of each on one connection."""
    frames = {"One.": 1, "Two chunks.": 29}
    engine = ScriptedEngine(frames=lambda text: frames.get(text) or frames_for(text), fail={"Fails.": (1, "internal")})
    expected = {
        "": [],
        "One.": ["audio.start", "audio.segment", "audio", "audio.done"],
        "Two chunks.": ["audio.start", "audio.segment", "audio", "audio", "audio.done"],
        "Fails.": ["audio.start", "audio.segment", "audio", "audio.done"],
    }
    ends = {"Fails.": "error"}
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        for number in range(50):
            for text, types in expected.items():
                name = f"{number}-{len(text)}"
                await client.speak(text, context_id=name)
                assert (await client.whole(name)).types == [*types, ends.get(text, "session.done")]
            await client.say("input.text", text="Cancelled.", context_id=f"c{number}")
            await client.say("input.cancel", context_id=f"c{number}")
            assert (await client.whole(f"c{number}")).types[-1] == "input.cancelled"
        await client.pong()
        over = list(client.contexts.values())
    assert len(over) == 250
    assert all(client.is_over(name) for name in client.contexts)
    assert all(
        [m["type"] for m in heard.messages if isinstance(m, dict)].count(heard.end["type"]) == 1 for heard in over
    )


async def test_characters_without_a_stop_cost_no_more_than_their_number(run_gateway):
    """One a message: twice as many take about twice the time, at the quietest of three times each."""

    async def seconds(count: int) -> float:
        async with run_gateway(ScriptedEngine(frames=lambda text: 1)) as gateway, await gateway.client() as client:
            begin = time.process_time()
            for _ in range(count):
                await client.socket.send('{"type": "input.text", "text": "a"}')
            await client.say("input.done")
            await client.whole("_0")
            return time.process_time() - begin

    await seconds(500)
    small, large = [min([await seconds(count) for _ in range(3)]) for count in (2500, 5000)]
    assert large / small < 3, (small, large)
