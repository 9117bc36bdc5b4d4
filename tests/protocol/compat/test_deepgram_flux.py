"""Deepgram's second protocol: one active turn, its audio between two messages, and what of it was heard."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from deepgram_session import RATE, DeepgramPeer
from protocol_session import DEFAULTS, NOTHING

from protocol.codes import CloseCode
from protocol.compat.deepgram.flux import Flux
from protocol.conversation import Closing
from protocol.events import ContextCancelled
from protocol.limits import Limits

CONTROLS = {"pronunciations_applied": 0, "breaks_applied": 0, "pronunciation_warnings": 0}


def opened(limits: Limits | None = None, speed: float | None = None) -> DeepgramPeer:
    return DeepgramPeer(Flux("r1", "flux-haley-en", speed), limits)


def kinds(messages: list) -> list[str]:
    return ["audio" if isinstance(message, bytes) else message["type"] for message in messages]


def metadata(name: str, text: str) -> dict:
    return {
        "speech_id": name, "audio_duration_ms": round(len(text) * 1000 / RATE),
        "input_character_count": len(text), "billable_character_count": len(text), "controls_applied": CONTROLS,
    }  # fmt: skip


def offset(ms: float) -> dict:
    return {"type": "time_ms", "value": ms}


def begin(peer: DeepgramPeer, text: str) -> str:
    """A turn's text -> its id."""
    peer.say("Speak", text=text)
    (started,) = peer.sent()
    assert started["type"] == "SpeechStarted"
    return started["speech_id"]


def test_connected_comes_first():
    ready = opened().ready
    assert len(ready.pop("model_uuids")) == 1
    assert ready == {
        "type": "Connected", "request_id": "r1", "model_name": "flux-haley-en", "model_version": "model",
    }  # fmt: skip


def test_a_turn():
    peer = opened()
    name = begin(peer, "Hello, ")
    assert re.fullmatch("dg_sp_[0-9a-f]{12}", name)
    assert peer.spoken() == [bytes(14)]
    peer.say("Speak", text="world.")
    peer.say("Flush")
    text = "Hello, world."
    assert peer.spoken() == [
        {"type": "Flushed", "speech_id": name}, bytes(12), {"type": "SpeechMetadata", **metadata(name, text)},
    ]  # fmt: skip


def test_turns_wait_for_the_active_one():
    peer = opened()
    for text in ("One.", "Two."):
        peer.say("Speak", text=text)
        peer.say("Flush")
    turn = ["SpeechStarted", "audio", "SpeechMetadata"]
    messages = peer.spoken()
    assert kinds(messages) == ["SpeechStarted", "Flushed", "Flushed", *turn[1:], *turn]
    assert len({message["speech_id"] for message in messages if isinstance(message, dict)}) == 2


def test_a_turn_that_cannot_be_spoken_ends_all_the_same():
    peer = opened()
    name = begin(peer, " ")
    peer.say("Flush")
    peer.sent()
    peer.session.done(0, "done", 1, *NOTHING)
    warning, end = peer.sent()
    assert warning["code"] == "NO_SYNTHESIZABLE_TEXT"
    assert end == {"type": "SpeechMetadata", **metadata(name, ""), **{"input_character_count": 1,
        "billable_character_count": 1}}  # fmt: skip


def test_empty_text_begins_no_turn():
    peer = opened()
    assert peer.say("Speak", text="") == [] and peer.sent() == []


@pytest.mark.parametrize("kind", ["Flush", "Interrupt"])
def test_without_a_turn_there_is_a_warning(kind):
    peer = opened()
    assert peer.say(kind) == []
    assert [message["code"] for message in peer.sent()] == ["NO_ACTIVE_SPEECH"]


def test_an_interrupt_stops_all_that_was_said_before():
    peer = opened()
    name = begin(peer, "One two.")
    peer.say("Flush")
    peer.say("Speak", text="Waits.")
    peer.say("Flush")
    peer.spoken(1)
    assert peer.say("Interrupt") == [ContextCancelled(1), ContextCancelled(0)]
    assert peer.spoken() == [
        {"type": "SpeechInterrupted", "audio_played_ms": 1, "metadata": metadata(name, "One two.")}
    ]
    begin(peer, "Next.")
    assert peer.spoken() == [bytes(10)]


def test_an_interrupt_before_there_is_audio():
    peer = opened()
    begin(peer, "One.")
    peer.say("Interrupt")
    (interrupted,) = peer.sent()
    assert (interrupted["type"], interrupted["audio_played_ms"]) == ("SpeechInterrupted", 0)
    assert interrupted["metadata"]["audio_duration_ms"] == 0 and interrupted["metadata"]["input_character_count"] == 4


def test_a_playback_offset_tells_what_was_heard():
    peer = opened()
    text = "word " * 1600  # of 8,000 characters: a second
    begin(peer, text)
    peer.spoken(1)
    peer.say("Interrupt", playback_offset=offset(500))
    (interrupted,) = peer.sent()
    assert interrupted["audio_played_ms"] == 500
    assert interrupted["text_spoken"] == "word " * 800 and interrupted["text_remaining"] == "word " * 800


def test_offsets_count_from_the_start_of_the_session():
    peer = opened()
    begin(peer, "word " * 1600)
    peer.say("Flush")
    peer.spoken()
    begin(peer, "word " * 1600)
    peer.spoken(1)
    peer.say("Interrupt", playback_offset=offset(1250))
    (interrupted,) = peer.sent()
    assert (interrupted["audio_played_ms"], interrupted["text_spoken"]) == (1250, "word " * 400)
    begin(peer, "word " * 1600)  # its audio begins where the listener was
    peer.spoken(1)
    peer.say("Interrupt", playback_offset=offset(1750))
    assert peer.sent()[0]["text_spoken"] == "word " * 800


def test_an_interrupt_behind_the_last_audio_sets_the_position_right():
    peer = opened()
    begin(peer, "word " * 1600)
    peer.say("Flush")
    peer.spoken()
    peer.say("Interrupt", playback_offset=offset(400))  # all is sent, and the listener drops the rest
    assert [message["code"] for message in peer.sent()] == ["NO_ACTIVE_SPEECH"]
    begin(peer, "word " * 1600)
    peer.spoken(1)
    peer.say("Interrupt", playback_offset=offset(900))
    assert peer.sent()[0]["text_spoken"] == "word " * 800


def test_an_offset_before_the_last_one_is_ignored():
    peer = opened()
    begin(peer, "word " * 1600)
    peer.spoken(1)
    peer.say("Interrupt", playback_offset=offset(500))
    peer.sent()
    begin(peer, "One.")
    assert peer.say("Interrupt", playback_offset=offset(499)) == []
    assert [message["code"] for message in peer.sent()] == ["INVALID_INTERRUPT_OFFSET"]
    assert peer.say("Interrupt", playback_offset=offset(500)) == [ContextCancelled(1)]


@pytest.mark.parametrize("given", [5, {}, {"type": "samples", "value": 1}, offset(-1), offset(True), offset("1")])
def test_an_offset_that_is_none_ends_the_connection(given):
    peer = opened()
    begin(peer, "One.")
    peer.say("Interrupt", playback_offset=given)
    (error,) = peer.sent()
    assert error["type"] == "Error" and "time_ms" in error["description"]
    assert peer.session.closing.code == CloseCode.POLICY


def test_close_drains_and_tells_the_totals():
    peer = opened()
    begin(peer, "One.")
    peer.say("Flush")
    peer.say("Speak", text="word " * 1600)
    peer.say("Close")
    messages = peer.spoken()
    assert kinds(messages[-3:]) == ["audio", "SpeechMetadata", "SessionMetadata"]
    assert messages[-1] == {
        "type": "SessionMetadata", "total_audio_duration_ms": round(8004 / 8),
        "total_input_character_count": 8004, "total_billable_character_count": 8004,
    }  # fmt: skip
    assert peer.session.closing == Closing(CloseCode.NORMAL, "")
    assert peer.session.receive_text(b'{"type": "Speak", "text": "late"}', peer.now) == []


def test_close_without_a_turn():
    peer = opened()
    peer.say("Close")
    assert peer.types() == ["SessionMetadata"]
    assert peer.session.closing == Closing(CloseCode.NORMAL, "")


def test_no_turn_begins_behind_the_close():
    peer = opened()
    begin(peer, "One.")
    peer.say("Close")
    peer.say("Speak", text="late")
    assert kinds(peer.spoken()) == ["audio", "SpeechMetadata", "SessionMetadata"]


def test_a_speed_holds_for_the_turns_that_begin_later():
    peer = opened(speed=0.9)
    first = peer.say("Speak", text="One.")[0]
    peer.say("Configure", speed=1.25)
    assert peer.sent()[1:] == [{"type": "ConfigureSuccess", "applied": {"speed": 1.25}}]
    peer.say("Flush")
    second = peer.say("Speak", text="Two.")[0]
    assert (first.config.speed, second.config.speed) == (0.9, 1.25)


def test_a_configuration_without_a_speed_tells_the_one_that_holds():
    peer = opened()
    peer.say("Configure")
    assert peer.sent() == [{"type": "ConfigureSuccess", "applied": {}}]
    assert peer.say("Speak", text="One.")[0].config == replace(DEFAULTS, sample_rate=RATE)


@pytest.mark.parametrize(
    ("speed", "code"),
    [
        (0.45, "SPEED_OUT_OF_RANGE"),
        (1.55, "SPEED_OUT_OF_RANGE"),
        ("1", "SPEED_OUT_OF_RANGE"),
        (True, "SPEED_OUT_OF_RANGE"),
        (1.02, "SPEED_INCREMENT_INVALID"),
    ],
)
def test_a_speed_that_is_none(speed, code):
    peer = opened()
    peer.say("Configure", speed=speed)
    (failure,) = peer.sent()
    assert (failure["type"], failure["code"], failure["field"]) == ("ConfigureFailure", code, "speed")
    assert failure["value"] == speed and peer.session.closing is None


def test_a_turn_of_a_silent_client_ends():
    peer = opened(Limits(context_idle_s=120, idle_s=3600))
    begin(peer, "One.")
    peer.spoken()
    peer.pass_time(130)
    assert kinds(peer.spoken()) == ["SpeechMetadata"]
    begin(peer, "Two.")
    assert peer.spoken() == [bytes(8)]


def test_too_long_a_text_begins_no_turn():
    peer = opened(Limits(text_characters=10))
    assert peer.say("Speak", text="x" * 11) == []
    assert [message["code"] for message in peer.sent()] == ["TEXT_TOO_LONG"]
    begin(peer, "One.")


def test_a_failure_ends_the_connection():
    peer = opened()
    begin(peer, "One.")
    peer.speaker.fail(0)
    (error,) = peer.sent()
    assert (error["type"], error["code"], error["description"]) == ("Error", "NET-0000", "scripted")
    assert peer.session.closing.code == CloseCode.INTERNAL


def test_an_unknown_type_ends_the_connection():
    peer = opened()
    peer.say("Clear")
    (error,) = peer.sent()
    assert error["type"] == "Error" and "Interrupt" in error["description"]


def test_a_turn_that_waits_in_the_server_shows_it():
    peer = opened()
    begin(peer, "One.")
    for state in ("queued", "waiting_text", "queued", "queued"):
        peer.session.progress(0, state, peer.now)
    assert [message["code"] for message in peer.sent()] == ["SYNTHESIS_QUEUED"]
