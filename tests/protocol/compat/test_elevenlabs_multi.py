"""`multi-stream-input`: contexts of the client, what closes them, and what each is told."""

from __future__ import annotations

import pytest
from elevenlabs_peer import ElevenPeer, Heard

from protocol.codes import CloseCode, ErrorCode
from protocol.compat.elevenlabs.multi_stream_input import MOST_CONTEXTS, MultiStreamInput
from protocol.conversation import Closing
from protocol.events import ContextCancelled, ContextOpened, FlushRequested, InputEnded, TextReceived
from protocol.limits import Limits


def opened(auto_mode: bool = False, limits: Limits | None = None) -> ElevenPeer:
    return ElevenPeer(MultiStreamInput(auto_mode, inactivity_s=20.0), limits)


def whole(text: str) -> Heard:
    """What is told of a context that was spoken to its end."""
    return Heard(text.encode("utf-16-le"), text, f"{text.strip()} ", finals=1)


def test_flush_then_close_speaks_all_of_it():
    peer = opened()
    assert peer.say(text=" ", context_id="a") == []
    peer.say(text="Hello there. ", context_id="a")
    peer.say(context_id="a", flush=True)
    assert peer.say(context_id="a", close_context=True) == [InputEnded(0, "done")]
    peer.speak_all()
    assert peer.heard() == {"a": whole("Hello there. ")}


def test_livekit_ends_with_an_empty_text_that_flushes():
    peer = opened()
    for message in ({"text": " "}, {"text": "Hi. ", "flush": True}, {"text": "", "flush": True}):
        peer.say(context_id="a", **message)
    assert peer.say(context_id="a", close_context=True) == [InputEnded(0, "done")]
    peer.speak_all()
    assert peer.heard() == {"a": whole("Hi. ")}


def test_close_without_a_flush_is_an_interruption():
    peer = opened()
    peer.say(text="Hello there. ", context_id="a")
    peer.say(context_id="a", flush=True)
    peer.say(text="And more. ", context_id="a")
    assert peer.say(context_id="a", close_context=True) == [ContextCancelled(0)]
    peer.speak_all()
    assert peer.heard() == {"a": Heard(finals=1)}


def test_a_second_close_is_an_interruption():
    peer = opened()
    peer.say(text="Hello. ", context_id="a")
    peer.say(context_id="a", flush=True)
    peer.say(context_id="a", close_context=True)
    assert peer.say(context_id="a", close_context=True) == [ContextCancelled(0)]
    assert peer.say(context_id="a", close_context=True) == []
    peer.speak_all()
    assert peer.heard() == {"a": Heard(finals=1)}


def test_text_in_the_closing_message_is_the_last_of_it():
    peer = opened()
    peer.say(text="Hello ", context_id="a")
    peer.say(text="there.", context_id="a", close_context=True)
    peer.speak_all()
    told = peer.heard()["a"]
    assert (told.chars, told.finals) == ("Hello there. ", 1)


def test_a_context_that_was_never_spoken_ends_too():
    peer = opened()
    peer.say(text=" ", context_id="a")
    peer.say(context_id="a", close_context=True)
    assert peer.heard() == {"a": Heard(finals=1)}


def test_an_unknown_context_is_closed_in_silence():
    peer = opened()
    assert peer.say(context_id="a", close_context=True) == []
    assert peer.heard() == {}


def test_an_id_can_be_used_again_while_its_first_context_is_spoken():
    peer = opened()
    for text in ("One. ", "Two. "):
        peer.say(text=text, context_id="a")
        peer.say(context_id="a", flush=True)
        peer.say(context_id="a", close_context=True)
    peer.speak_all()
    finals = [message["isFinal"] for message in peer.received()]
    assert finals == [None, True, None, True]


def test_a_context_without_an_id_and_an_id_in_camel_case():
    peer = opened()
    peer.say(text="Hello. ", flush=True)
    peer.say(close_context=True)
    peer.say(text="World. ", flush=True, contextId="b")
    peer.say(contextId="b", close_context=True)
    peer.speak_all()
    assert peer.heard() == {None: whole("Hello. "), "b": whole("World. ")}


def test_a_flushed_context_makes_way_and_goes_on_later():
    peer = opened()
    peer.say(text="One. ", context_id="a", flush=True)
    peer.say(text="Two. ", context_id="b", flush=True)
    peer.speak_all()
    assert {name: heard.chars for name, heard in peer.heard().items()} == {"a": "One. ", "b": "Two. "}
    peer.say(text="Three. ", context_id="a", flush=True)
    for name in "ab":
        peer.say(context_id=name, close_context=True)
    peer.speak_all()
    told = peer.heard()
    assert {name: (heard.chars, heard.finals) for name, heard in told.items()} == {
        "a": ("One. Three. ", 1),
        "b": ("Two. ", 1),
    }


def test_a_context_that_was_not_flushed_is_spoken_first():
    peer = opened()
    peer.say(text="One. ", context_id="a")
    peer.say(text="Two. ", context_id="b", flush=True)
    peer.speak_all()
    assert list(peer.heard()) == ["a"]
    peer.say(context_id="a", close_context=True)
    peer.speak_all()
    assert peer.heard()["b"].chars == "Two. "


def test_in_auto_mode_a_sentence_is_spoken_at_once():
    peer = opened(auto_mode=True)
    peer.say(text=" ", context_id="a")
    text, sentences = "", []
    for said in ("Hello ", "there.", "“How are you?” ", "It is three ", "o'clock"):
        text += said if said.endswith(" ") else f"{said} "
        events = peer.say(text=said, context_id="a")
        sentences.append(any(isinstance(event, FlushRequested) for event in events))
    assert sentences == [False, True, True, False, False]
    peer.say(context_id="a", flush=True)
    peer.say(context_id="a", close_context=True)
    peer.speak_all()
    assert (peer.heard()["a"].chars, peer.heard()["a"].finals) == (text, 1)


def test_without_it_text_is_taken_as_it_comes():
    peer = opened()
    assert peer.say(text="Hello.", context_id="a")[1:] == [TextReceived(0, "Hello.")]
    assert peer.say(text="5 is", context_id="a") == [TextReceived(0, "5 is")]


def test_an_empty_text_keeps_a_context_alive():
    peer = opened(limits=Limits(context_idle_s=20))
    peer.say(text="Hello ", context_id="a")
    for peer.now in (15.0, 30.0, 45.0):
        assert peer.say(text="", context_id="a") == []
        assert peer.session.tick(peer.now) == []
    assert peer.session.tick(64.0) == []
    peer.speaker.act(peer.session.tick(66.0))
    peer.speak_all()
    assert peer.heard() == {"a": whole("Hello ")}


def test_an_empty_text_without_a_context_opens_none():
    peer = opened(limits=Limits(idle_s=20))
    for peer.now in (15.0, 30.0, 45.0):
        assert peer.say(text="") == [] and peer.session.tick(peer.now) == []
    assert peer.heard() == {}
    peer.session.tick(66.0)
    (error,) = peer.heard()[None].errors
    assert error["error"] == "input_timeout_exceeded" and error["code"] == 1008 and "20 seconds" in error["message"]
    assert peer.session.closing.code == CloseCode.POLICY


def test_five_contexts_may_be_open():
    peer = opened()
    for name in range(MOST_CONTEXTS):
        peer.say(text=" ", context_id=str(name))
    peer.say(context_id="0", close_context=True)
    peer.say(text=" ", context_id="again")
    assert peer.session.closing is None
    peer.say(text=" ", context_id="more")
    (error,) = peer.heard()[None].errors
    assert error["error"] == "max_active_conversations" and error["code"] == 1008
    assert peer.session.closing.code == CloseCode.POLICY


def test_close_socket_speaks_what_is_open_then_closes():
    peer = opened()
    peer.say(text="One. ", context_id="a")
    peer.say(text="Two", context_id="b")
    peer.say(close_socket=True)
    peer.say(text="Three", context_id="c")
    assert peer.session.closing is None
    peer.speak_all()
    told = peer.heard()
    assert {name: (heard.chars, heard.finals) for name, heard in told.items()} == {"a": ("One. ", 1), "b": ("Two ", 1)}
    assert peer.session.closing == Closing(CloseCode.NORMAL, "")


def test_a_failure_is_told_of_its_context_alone():
    peer = opened()
    peer.say(text="One. ", context_id="a")
    peer.say(text="Two. ", context_id="b", flush=True)
    peer.session.failed(0, ErrorCode.ENGINE_FAILED, "broken")
    del peer.speaker.work[0]
    peer.say(context_id="b", close_context=True)
    peer.speak_all()
    told = peer.heard()
    assert told["a"].errors == [{"message": "broken", "error": "engine_failed", "code": 1011, "contextId": "a"}]
    assert told["b"] == whole("Two. ") and peer.session.closing is None


def test_the_speed_of_a_context():
    peer = opened()
    peer.say(text=" ", context_id="a", voice_settings={"stability": 0.5, "speed": 1.1})
    started, *_ = peer.say(text="Hello ", context_id="a", voice_settings={"speed": 1.1})
    assert isinstance(started, ContextOpened) and started.config.speed == 1.1
    started, *_ = peer.say(text="Hello ", context_id="b", voice_settings={"speed": 1.0})
    assert started.config.speed == 1.0
    peer.say(text="there.", context_id="a", voice_settings={"speed": 0.9})
    assert "speed must not change" in peer.heard()[None].errors[0]["message"]
    assert peer.session.closing.code == CloseCode.POLICY


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("{", "not JSON"),
        ("[]", "JSON object"),
        ('{"text": 5}', "text must be a string; got 5"),
        ('{"text": "a", "flush": "yes"}', "flush must be true or false"),
        ('{"text": "a", "context_id": 7}', "context_id must be a string"),
        ('{"text": "a", "context_id": "\\ud800"}', "context_id must be a string of at most 256 characters"),
        ('{"text": "a", "voice_settings": [1]}', "voice_settings must be an object"),
        ('{"text": "a", "voice_settings": {"speed": 2}}', "speed must be a number from 0.7 to 1.2; got 2"),
        ('{"text": "a", "pronunciation_dictionary_locators": [{}]}', "no pronunciation dictionaries"),
    ],
)
def test_what_is_wrong_is_named_and_ends_the_connection(raw, why):
    peer = opened()
    peer.say(text="Hello ", context_id="a")
    peer.raw(raw)
    told = peer.heard()
    assert why in told[None].errors[0]["message"] and told["a"].finals == 1
    assert peer.session.closing.code == CloseCode.POLICY
    assert peer.session.closing.reason == told[None].errors[0]["message"]


def test_what_only_elevenlabs_has_is_passed_over():
    peer = opened()
    extras = {"generation_config": {"chunk_length_schedule": [50]}, "try_trigger_generation": True, "xi-api-key": "k"}
    settings = {"stability": 0.5, "similarity_boost": 0.8, "style": 0, "use_speaker_boost": True}
    peer.say(text="Hello.", context_id="a", voice_settings=settings, pronunciation_dictionary_locators=[], **extras)
    peer.say(context_id="a", flush=True)
    peer.say(context_id="a", close_context=True)
    peer.speak_all()
    assert peer.heard() == {"a": whole("Hello. ")}
