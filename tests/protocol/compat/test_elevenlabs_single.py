"""`stream-input`: one text, which an empty one ends."""

from __future__ import annotations

from elevenlabs_peer import ElevenPeer, Heard

from protocol.codes import CloseCode, ErrorCode
from protocol.compat.elevenlabs.stream_input import StreamInput
from protocol.conversation import Closing
from protocol.events import FlushRequested, InputEnded, TextReceived
from protocol.limits import Limits


def opened(limits: Limits | None = None) -> ElevenPeer:
    return ElevenPeer(StreamInput(auto_mode=False, inactivity_s=20.0), limits)


def test_an_empty_text_is_the_end():
    peer = opened()
    assert peer.say(text=" ", try_trigger_generation=True, voice_settings=None) == []
    peer.say(text="Hello ")
    peer.say(text="there.")
    assert peer.say(text="") == [TextReceived(0, " "), InputEnded(0, "done")]
    assert peer.say(text="too late") == []
    peer.speak_all()
    told = peer.heard()[None]
    assert (told.chars, told.normalized, told.finals) == ("Hello there. ", "Hello there. ", 1)
    assert "contextId" not in peer.messages[0]
    assert peer.session.closing == Closing(CloseCode.NORMAL, "")


def test_nothing_to_say():
    peer = opened()
    peer.say(text=" ")
    peer.say(text="")
    assert peer.heard() == {None: Heard(finals=1)}
    assert peer.session.closing == Closing(CloseCode.NORMAL, "")


def test_a_flush_ends_nothing():
    peer = opened()
    assert FlushRequested(0) in peer.say(text="Hello there", flush=True)
    peer.speak_all()
    assert (peer.heard()[None].chars, peer.heard()[None].finals) == ("Hello there ", 0)
    peer.say(text="and more ")
    assert FlushRequested(0) in peer.say(flush=True)
    peer.speak_all()
    assert peer.heard()[None].chars == "Hello there and more "
    assert peer.session.closing is None


def test_a_space_keeps_it_alive_and_is_no_text():
    peer = opened(Limits(context_idle_s=20))
    peer.say(text="Hello ")
    for peer.now in (15.0, 30.0, 45.0):
        assert peer.say(text=" ") == [] and peer.session.tick(peer.now) == []
    peer.say(text="")
    peer.speak_all()
    assert peer.heard()[None].chars == "Hello "


def test_who_says_nothing_hears_the_rest_then_an_error():
    peer = opened(Limits(context_idle_s=20, idle_s=20))
    peer.say(text="Hello ")
    peer.speaker.act(peer.session.tick(20.0))
    peer.speak_all()
    assert peer.heard()[None].chars == "Hello " and peer.session.closing is None
    peer.session.tick(45.0)
    (error,) = peer.heard()[None].errors
    assert (error["error"], error["code"]) == ("input_timeout_exceeded", 1008)
    assert peer.session.closing.code == CloseCode.POLICY


def test_a_failure_ends_the_connection_and_is_told_once():
    peer = opened()
    peer.say(text="Hello.", flush=True)
    peer.session.failed(0, ErrorCode.ENGINE_FAILED, "broken")
    peer.session.tick(0.0)
    assert peer.heard()[None].errors == [{"message": "broken", "error": "engine_failed", "code": 1011}]
    assert peer.session.closing.reason == "broken"


def test_text_is_needed():
    peer = opened()
    peer.say(voice_settings={"speed": 1.0})
    assert "text" in peer.heard()[None].errors[0]["message"]
    assert peer.session.closing.code == CloseCode.POLICY
