"""Deepgram's first protocol: what may be waited for comes behind the audio, and nothing stale behind a fence."""

from __future__ import annotations

import pytest
from deepgram_session import DeepgramPeer

from protocol.codes import CloseCode, ErrorCode
from protocol.compat.deepgram.aura import Aura
from protocol.conversation import Closing
from protocol.events import ContextCancelled, ContextOpened
from protocol.limits import Limits


def opened(limits: Limits | None = None) -> DeepgramPeer:
    return DeepgramPeer(Aura("r1", "aura-2-thalia-en"), limits)


def flushed(number: int) -> dict:
    return {"type": "Flushed", "sequence_id": number}


def cleared(number: int) -> dict:
    return {"type": "Cleared", "sequence_id": number}


def test_metadata_comes_first():
    ready = opened().ready
    assert ready.pop("model_uuid") == opened().ready["model_uuid"]
    assert ready == {
        "type": "Metadata", "request_id": "r1", "model_name": "aura-2-thalia-en", "model_version": "model",
    }  # fmt: skip


def test_speech_does_not_wait_for_the_flush_and_flushed_follows_it():
    peer = opened()
    peer.say("Speak", text="Hello, ")
    assert peer.spoken() == [bytes(14)]
    peer.say("Speak", text="world.")
    peer.say("Flush")
    assert peer.spoken() == [bytes(12), flushed(0)]


def test_turns_follow_one_another():
    peer = opened()
    for text in ("One.", "Two.", "Three."):
        peer.say("Speak", text=text)
        peer.say("Flush")
    assert peer.spoken() == [bytes(8), flushed(0), bytes(8), flushed(1), bytes(12), flushed(2)]


@pytest.mark.parametrize("said", [[], [("Speak", {"text": ""})]])
def test_a_flush_without_text_is_answered_in_its_turn(said):
    peer = opened()
    peer.say("Speak", text="One.")
    peer.say("Flush")
    for kind, fields in said:
        peer.say(kind, **fields)
    peer.say("Flush")
    assert peer.spoken() == [bytes(8), flushed(0), flushed(1)]


def test_clear_is_a_fence():
    peer = opened()
    peer.say("Speak", text="One.")
    peer.say("Flush")
    peer.say("Speak", text="Two.")
    assert peer.spoken(1) == [bytes(8)]
    assert peer.say("Clear") == [ContextCancelled(0), ContextCancelled(1)]
    assert peer.spoken() == [cleared(0)], "neither the rest nor the answer to the flush"
    peer.say("Speak", text="Three.")
    peer.say("Flush")
    assert peer.spoken() == [bytes(12), flushed(1)]


def test_clear_with_nothing_to_clear_is_answered():
    peer = opened()
    peer.say("Clear")
    assert peer.sent() == [cleared(0)]


def test_close_drains():
    peer = opened()
    peer.say("Speak", text="One.")
    peer.say("Close")
    assert peer.session.closing is None
    assert peer.spoken() == [bytes(8)]
    assert peer.session.closing == Closing(CloseCode.NORMAL, "")


def test_a_flush_before_the_close_is_answered():
    peer = opened()
    peer.say("Flush")
    peer.say("Close")
    assert peer.spoken() == [flushed(0)]
    assert peer.session.closing == Closing(CloseCode.NORMAL, "")


def test_text_behind_the_close_is_warned_of():
    peer = opened()
    peer.say("Speak", text="One.")
    peer.say("Close")
    peer.say("Speak", text="Two.")
    assert [message["code"] for message in peer.sent()] == ["CONTEXT_ENDED"]


def test_text_after_minutes_of_silence_is_spoken():
    peer = opened(Limits(context_idle_s=120, idle_s=3600))
    peer.say("Speak", text="Never flushed")
    peer.spoken()
    peer.pass_time(200)
    peer.say("Speak", text="Late.")  # before the end of the first one was sent
    peer.say("Flush")
    assert peer.spoken() == [bytes(10), flushed(0)]
    peer.pass_time(3000)
    peer.say("Speak", text="Later.")
    assert peer.spoken() == [bytes(12)]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("{", "not JSON"),
        ("[]", "a message is a JSON object with a type"),
        ('{"type": 1}', "a message is a JSON object with a type"),
        ('{"type": "Speek"}', "known types: Speak, Flush, Clear, Close"),
        ('{"type": "Speak"}', "Speak needs text"),
        ('{"type": "Speak", "text": 1}', "Speak needs text"),
    ],
)
def test_what_is_wrong_ends_the_connection(message, words):
    peer = opened()
    peer.say("Speak", text="One.")
    assert peer.raw(message) == [ContextCancelled(0)]
    (error,) = peer.sent()
    assert (error["type"], error["code"]) == ("Error", "DATA-0000") and words in error["description"]
    assert peer.session.closing.code == CloseCode.POLICY
    assert peer.session.closing.reason.startswith("DATA-0000: ")


def test_a_reason_fits_into_a_close_frame():
    peer = opened()
    peer.say("ä" * 200)
    assert len(peer.session.closing.reason.encode()) <= 123


def test_unknown_fields_are_ignored():
    peer = opened()
    (started, _) = peer.say("Speak", text="One.", future=True)
    assert isinstance(started, ContextOpened)


def test_keep_alive_is_taken():
    peer = opened(Limits(idle_s=300))
    peer.pass_time(200)
    assert peer.say("KeepAlive") == []
    peer.pass_time(200)
    assert peer.session.closing is None and peer.sent() == []


def test_a_failure_ends_the_connection():
    peer = opened()
    peer.say("Speak", text="One.")
    peer.say("Flush")
    peer.speaker.fail(0)
    (error,) = peer.sent()
    assert (error["type"], error["code"], error["err_code"]) == ("Error", "NET-0000", "engine_failed")
    assert peer.session.closing == Closing(CloseCode.INTERNAL, "NET-0000: scripted")


def test_too_long_a_text_is_warned_of():
    peer = opened(Limits(text_characters=10))
    peer.say("Speak", text="One.")
    peer.say("Speak", text="x" * 8)
    (warning,) = peer.sent()
    assert warning["type"] == "Warning" and warning["code"] == warning["warn_code"] == "TEXT_TOO_LONG"
    assert "nothing was appended" in warning["description"]
    peer.say("Flush")
    assert peer.spoken() == [bytes(8), flushed(0)]


def test_silence_shows_signs_of_life():
    peer = opened()
    peer.say("Speak", text="One.")
    for _ in range(6):
        peer.now += 1.5
        peer.session.progress(0, "queued", peer.now)
    assert peer.types() == ["Metadata", "Metadata"]


def test_the_idle_end_has_their_code():
    peer = opened(Limits(idle_s=10))
    peer.pass_time(11)
    assert [message["code"] for message in peer.sent()] == ["NET-0001"]
    assert ErrorCode.IDLE_TIMEOUT not in peer.session.closing.reason
