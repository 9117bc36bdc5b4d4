"""The session core: states, order on the wire, ids, limits, clocks.  No I/O."""

from __future__ import annotations

from dataclasses import replace

import pytest
from protocol_session import HELLO, NOTHING, RULES, Peer

from protocol.codes import CloseCode, ErrorCode, LocalProtocolError
from protocol.events import ContextCancelled, ContextOpened, FlushRequested, InputEnded, ReferenceGiven, TextReceived
from protocol.framing import AudioHeader
from protocol.limits import Limits
from protocol.native import Native
from protocol.session import ServerSession


def test_a_context_from_text_to_its_end():
    peer = Peer()
    opened, text = peer.say("input.text", text="Hello.")
    assert isinstance(opened, ContextOpened) and (opened.number, opened.context_id) == (0, "_0")
    assert text == TextReceived(0, "Hello.")
    assert peer.say("input.done") == [InputEnded(0, "done")]
    peer.session.audio_start(0)
    peer.speak(0, "Hello.")
    peer.session.done(0, "done", 42, *NOTHING)
    sent = peer.sent()
    assert sent[0] == {
        "type": "audio.start", "context_id": "_0", "context_number": 0, "utterance_index": 0,
        "format": "pcm", "sample_rate": 44100, "channels": 1,
    }  # fmt: skip
    assert sent[1] == {
        "type": "audio.segment", "context_id": "_0", "segment_index": 0,
        "text": "Hello.", "spoken": "Hello.", "start_sample": 0,
    }  # fmt: skip
    assert sent[2] == bytes(200)
    assert sent[3] == {
        "type": "audio.done", "context_id": "_0", "utterance_index": 0,
        "total_bytes": 200, "samples": 100, "error": None,
    }  # fmt: skip
    assert sent[4]["type"] == "session.done" and sent[4]["reason"] == "done" and sent[4]["seed"] == 42
    assert peer.session.open_contexts == ()


def test_done_without_text_is_an_empty_context():
    peer = Peer()
    events = peer.say("input.done", context_id="a")
    assert [type(event) for event in events] == [ContextOpened, InputEnded]
    peer.session.done(0, "done", 42, *NOTHING)
    assert peer.types() == ["session.done"]
    assert peer.say("input.text", text="again", context_id="a") == []
    assert peer.sent()[0]["code"] == "context_ended"


def test_empty_text_opens_nothing():
    peer = Peer()
    assert peer.say("input.text", text="", context_id="a") == []
    assert peer.session.open_contexts == () and peer.sent() == []
    peer.say("session.config", voice="bo")
    assert peer.types() == ["session.configured"]


def test_ids_are_used_once_and_refused_once():
    peer = Peer()
    peer.say("input.text", text="x", context_id="a")
    peer.say("input.done", context_id="a")
    for kind, fields in (("input.text", {"text": "y"}), ("input.flush", {}), ("input.done", {})):
        assert peer.say(kind, context_id="a", **fields) == []
    assert [(m["code"], m["about_context_id"], m["fatal"]) for m in peer.sent()] == [("context_ended", "a", False)]
    peer.say("input.cancel", context_id="a")
    peer.sent()
    peer.say("input.text", text="z", context_id="a")
    assert peer.sent() == [], "the refusal while it drained was the one"


def test_only_the_last_ids_are_remembered():
    peer = Peer(Limits(remembered_ids=2))
    for name in "abc":
        peer.say("input.text", text="x", context_id=name)
        peer.say("input.cancel", context_id=name)
    peer.sent()
    assert peer.say("input.text", text="x", context_id="b") == []
    assert peer.say("input.text", text="x", context_id="a") != []


def test_unnamed_contexts_follow_one_another():
    peer = Peer()
    peer.say("input.text", text="one")
    peer.say("input.done")
    events = peer.say("input.text", text="two")
    assert events[0].context_id == "_1"
    assert peer.say("input.text", text=" more") == [TextReceived(1, " more")]
    assert peer.say("input.flush") == [FlushRequested(1)]


def test_a_flush_of_an_unknown_context_is_answered_at_once():
    peer = Peer()
    assert peer.say("input.flush", flush_id="f") == []
    assert peer.say("input.flush", context_id="new") == []
    flushed = {"type": "input.flushed", "end_sample": 0}
    assert peer.sent() == [
        flushed | {"context_id": None, "flush_id": "f"},
        flushed | {"context_id": "new", "flush_id": None},
    ]
    assert peer.say("input.text", text="x", context_id="new") != [], "the id is not used up"


def test_too_many_unanswered_flushes_are_refused():
    peer = Peer(Limits(pending_flushes=2))
    peer.say("input.text", text="x", context_id="a")
    assert [len(peer.say("input.flush", context_id="a")) for _ in range(3)] == [1, 1, 0]
    assert peer.sent()[0]["code"] == "rate_limited"


def test_cancel_is_answered_at_once_and_nothing_follows():
    peer = Peer()
    peer.say("input.text", text="One two three", context_id="a")
    peer.session.audio_start(0)
    peer.speak(0, "One two three", samples=441, total=44100)
    peer.sent()
    assert peer.say("input.cancel", context_id="a") == [ContextCancelled(0)]
    assert peer.sent() == [
        {
            "type": "input.cancelled",
            "context_id": "a",
            "samples_sent": 441,
            "text_spoken": "",
            "text_remaining": "One two three",
        }
    ]
    with pytest.raises(LocalProtocolError):
        peer.session.audio(0, b"ab", 1, 0.0)
    assert peer.say("input.cancel", context_id="a") == [] and peer.sent() == []


def test_a_cancel_tells_what_was_heard():
    peer = Peer()
    peer.say("input.text", text="One two three four. Five six.", context_id="a")
    peer.session.audio_start(0)
    peer.speak(0, "One two three four. ", samples=44100, total=44100)
    peer.speak(0, "Five six.", samples=44100, total=44100)
    peer.sent()
    peer.say("input.cancel", context_id="a", playback_offset_ms=600)
    cancelled = peer.sent()[0]
    assert cancelled["samples_sent"] == 88200
    assert (cancelled["text_spoken"], cancelled["text_remaining"]) == ("One two ", "three four. Five six.")


def test_close_cancels_all_then_closes():
    peer = Peer()
    for name in "ab":
        peer.say("input.text", text="x", context_id=name)
    assert peer.say("session.close") == [ContextCancelled(0), ContextCancelled(1)]
    assert [message["context_id"] for message in peer.sent()] == ["a", "b"]
    assert peer.session.closing.code == CloseCode.NORMAL
    assert peer.say("input.text", text="late") == [] and peer.sent() == []


def test_the_config_is_sticky_and_locked_while_a_context_is_open():
    peer = Peer()
    peer.say("session.config", voice="bo")
    assert peer.sent()[0]["config"]["voice"] == "bo"
    events = peer.say("input.text", text="x", context_id="a", seed=7, language="de", voice="ada")
    config = events[0].config
    assert (config.voice, config.seed, config.language) == ("ada", 7, "de")
    peer.say("session.config", voice="ada")
    assert peer.sent()[0]["code"] == "config_locked"
    assert peer.say("input.text", text="y", context_id="a", seed=8) == []
    refused = peer.sent()[0]
    assert (refused["code"], refused["about_context_id"]) == ("config_locked", "a")
    assert peer.say("input.text", text="y", context_id="a", language=None)  # as good as left out
    assert peer.say("input.text", text="z", context_id="a", voice=None) == []  # no voice: a meaning of its own
    assert peer.sent()[0]["code"] == "config_locked"
    peer.say("input.cancel")
    peer.say("session.config", voice="ada")
    assert peer.types() == ["input.cancelled", "session.configured"]
    assert peer.session.config.seed == 42, "an override is for its context only"


def test_a_language_of_null_is_none_that_was_given():
    peer = Peer()
    peer.say("session.config", language="de")
    opened, _ = peer.say("input.text", text="x", context_id="a", language=None)
    assert opened.config.language == "de"
    assert peer.say("input.text", text="y", context_id="a", language=None) == [TextReceived(0, "y")]


def test_text_beyond_the_buffer_is_refused_whole():
    peer = Peer(Limits(text_characters=10))
    peer.say("input.text", text="123456", context_id="a")
    assert peer.say("input.text", text="78901", context_id="a") == []
    assert peer.sent()[0]["code"] == "text_too_long"
    assert peer.say("input.text", text="7890", context_id="a") == [TextReceived(0, "7890")]
    peer.session.text_taken(0, 6)
    assert peer.say("input.text", text="abcdef", context_id="a") == [TextReceived(0, "abcdef")]


def test_a_failed_opening_uses_up_id_and_number():
    peer = Peer(Limits(contexts=1))
    assert peer.say("input.text", text="x", context_id="a", voice="nobody") == []
    assert peer.say("input.text", text="x", context_id="b")[0].number == 1
    assert peer.say("input.text", text="x", context_id="c") == []
    assert peer.say("input.done") == []
    errors = [(m["code"], m["context_id"]) for m in peer.sent()]
    assert errors == [("unknown_voice", "a"), ("too_many_contexts", "c"), ("too_many_contexts", "_3")]


def test_halves_wait_for_the_next_message_of_their_context():
    peer = Peer()
    assert peer.raw('{"type":"input.text","context_id":"a","text":"x\\ud83d"}')[1:] == [TextReceived(0, "x")]
    assert peer.raw('{"type":"input.text","context_id":"b","text":"\\ude00"}')[1:] == [TextReceived(1, "\ufffd")]
    assert peer.raw('{"type":"input.text","context_id":"a","text":"\\ude00"}') == [TextReceived(0, "\N{GRINNING FACE}")]
    assert peer.raw('{"type":"input.text","context_id":"a","text":"\\ud83d"}') == []
    assert peer.say("input.flush", context_id="a") == [TextReceived(0, "\ufffd"), FlushRequested(0)]


def test_the_order_on_the_wire_is_enforced():
    peer = Peer()
    peer.say("input.text", text="a b c", context_id="a")
    peer.say("input.text", text="behind", context_id="b")
    session = peer.session
    with pytest.raises(LocalProtocolError):
        session.audio_segment(0, "a ", "a")  # before audio.start
    with pytest.raises(LocalProtocolError):
        session.audio_start(1)  # not its turn
    session.audio_start(0)
    with pytest.raises(LocalProtocolError):
        session.audio(0, b"ab", 1, 0.0)  # before audio.segment
    with pytest.raises(LocalProtocolError):
        session.audio_segment(0, "b", "b")  # not the received text
    with pytest.raises(LocalProtocolError):
        session.flushed(0)  # nobody asked
    with pytest.raises(LocalProtocolError):
        session.done(0, "done", 1, *NOTHING)  # the input is open


def test_audio_must_be_whole_samples_and_never_empty():
    peer = Peer()
    peer.say("input.text", text="abc")
    peer.session.audio_start(0)
    peer.session.audio_segment(0, "abc", "abc")
    for data, samples in ((b"", 0), (b"abc", 1), (b"ab", 2)):
        with pytest.raises(LocalProtocolError):
            peer.session.audio(0, data, samples, 0.0)


def test_encoded_samples_count_when_they_are_given_to_the_encoder():
    """Some bring no bytes, and at the end come bytes without samples."""
    peer = Peer()
    peer.say("session.config", response_format="mp3", sample_rate=8000)
    peer.say("input.text", text="ab cd")
    peer.say("input.done")
    peer.session.audio_start(0)
    peer.session.audio_segment(0, "ab ", "ab")
    peer.session.audio(0, b"", 371, 0.0)
    peer.session.audio_segment(0, "cd", "cd")
    peer.session.audio(0, b"abc", 371, 0.0)
    peer.session.audio_rest(0, b"defg", 0.0)
    with pytest.raises(LocalProtocolError):
        peer.session.audio(0, b"h", 1, 0.0)  # after the rest
    peer.session.done(0, "done", 1, *NOTHING)
    messages = peer.sent()[1:]
    assert [m if isinstance(m, bytes) else m["type"] for m in messages] == [
        *("audio.start", "audio.segment", "audio.segment", b"abc", b"defg", "audio.done", "session.done")
    ]
    assert [messages[1]["start_sample"], messages[2]["start_sample"]] == [0, 371]
    assert (messages[5]["total_bytes"], messages[5]["samples"]) == (7, 742)


def test_only_encoded_audio_has_a_rest():
    peer = Peer()
    peer.say("input.text", text="abc")
    peer.session.audio_start(0)
    peer.speak(0, "abc")
    with pytest.raises(LocalProtocolError, match="pcm"):
        peer.session.audio_rest(0, b"ab", 0.0)


def test_after_a_flush_comes_a_segment_before_more_audio():
    peer = Peer()
    peer.say("input.text", text="abc")
    peer.say("input.flush", flush_id="f")
    peer.session.audio_start(0)
    peer.speak(0, "abc", samples=7)
    peer.session.flushed(0)
    assert peer.sent()[-1] == {"type": "input.flushed", "context_id": "_0", "flush_id": "f", "end_sample": 7}
    with pytest.raises(LocalProtocolError):
        peer.session.audio(0, b"ab", 1, 0.0)


def test_done_owes_all_flushes_and_all_text():
    peer = Peer()
    peer.say("input.text", text="ab cd")
    peer.say("input.flush")
    peer.say("input.done")
    peer.session.audio_start(0)
    peer.speak(0, "ab ")
    with pytest.raises(LocalProtocolError, match="flushes"):
        peer.session.done(0, "done", 1, *NOTHING)
    peer.session.flushed(0)
    with pytest.raises(LocalProtocolError, match="announced"):
        peer.session.done(0, "done", 1, *NOTHING)


def test_failure_after_audio_tells_both():
    peer = Peer()
    peer.say("input.text", text="abc", context_id="a")
    peer.session.audio_start(0)
    peer.speak(0, "abc")
    peer.sent()
    peer.session.failed(0, ErrorCode.OVERLOADED, "full", retry_after_ms=500)
    done, error = peer.sent()
    assert (done["type"], done["error"]) == ("audio.done", "overloaded")
    assert error == {
        "type": "error", "code": "overloaded", "message": "full", "fatal": False,
        "context_id": "a", "retry_after_ms": 500,
    }  # fmt: skip
    with pytest.raises(LocalProtocolError):
        peer.session.failed(0, ErrorCode.INTERNAL, "again")


def test_headers_count_messages_and_samples():
    peer = Peer()
    peer.say("session.config", framing="header", response_format="f32")
    peer.say("input.text", text="ab")
    peer.session.audio_start(0)
    peer.session.audio_segment(0, "ab", "ab")
    for samples in (3, 5):
        peer.session.audio(0, bytes(4 * samples), samples, 0.0)
    audio = [message for message in peer.sent() if isinstance(message, bytes)]
    assert [AudioHeader.unpack(message) for message in audio] == [AudioHeader(0, 0, 3, 0), AudioHeader(0, 1, 5, 3)]
    assert [len(message) for message in audio] == [24 + 12, 24 + 20]


def test_idle_contexts_are_ended_and_pings_keep_them():
    peer = Peer(Limits(context_idle_s=10, idle_s=100))
    peer.say("input.text", text="x", context_id="a")
    peer.say("input.text", text="x", context_id="b")
    peer.now = 9.0
    peer.say("session.ping", id="1", context_id="a")
    assert peer.session.tick(10.0) == [InputEnded(1, "idle")]
    assert peer.session.tick(18.9) == [] and peer.session.tick(19.0) == [InputEnded(0, "idle")]


def test_an_idle_connection_ends_but_not_while_it_speaks():
    peer = Peer(Limits(idle_s=100))
    peer.say("input.done", context_id="a")
    assert peer.session.tick(1000.0) == [] and peer.session.closing is None
    peer.session.done(0, "done", 1, *NOTHING)
    peer.sent()
    peer.session.tick(1099.0)
    assert peer.session.closing is None
    peer.session.tick(1100.0)
    assert peer.session.closing.code == CloseCode.POLICY and peer.sent()[0]["code"] == "idle_timeout"


def test_silence_is_noticed():
    peer = Peer()
    peer.say("input.text", text="x", context_id="a")
    assert peer.session.silent(1.4) == [] and peer.session.silent(1.5) == [0]
    peer.session.progress(0, "queued", 1.5, queue_position=3)
    assert peer.sent()[0] == {"type": "session.progress", "context_id": "a", "state": "queued", "queue_position": 3}
    assert peer.session.silent(2.9) == []


def test_shutdown_fails_each_context_then_closes():
    peer = Peer()
    peer.say("input.text", text="x", context_id="a")
    assert peer.session.shut_down("bye") == [ContextCancelled(0)]
    errors = [(m["code"], m.get("context_id"), m["fatal"]) for m in peer.sent()]
    assert errors == [("shutting_down", "a", False), ("shutting_down", None, True)]
    assert peer.session.closing.code == CloseCode.RESTART
    assert peer.session.shut_down("again") == [] and peer.sent() == []


def test_winding_down_lets_what_is_open_end_and_takes_nothing_new():
    peer = Peer()
    peer.say("input.text", text="x", context_id="a")
    peer.session.wind_down("bye")
    assert peer.sent() == [] and peer.session.closing is None
    peer.say("input.text", text="x", context_id="b")
    peer.say("input.done")
    assert [(m["code"], m["context_id"], m["fatal"]) for m in peer.sent()] == [
        ("shutting_down", "b", False),
        ("shutting_down", "_2", False),
    ]
    assert [type(event) for event in peer.say("input.text", text="y", context_id="a")] == [TextReceived]
    peer.say("input.done", context_id="a")
    peer.session.done(0, "done", 1, *NOTHING)
    assert [m["type"] for m in peer.sent()] == ["session.done", "error"]
    assert peer.session.closing.code == CloseCode.RESTART


@pytest.mark.parametrize("end", ["input.cancel", "session.close"])
def test_winding_down_ends_once_however_the_last_context_ends(end):
    peer = Peer()
    peer.say("input.text", text="x", context_id="a")
    peer.session.wind_down("bye")
    peer.say(end)
    fatal = ["error"] if end == "input.cancel" else []
    assert [m["type"] for m in peer.sent()] == ["input.cancelled", *fatal]
    assert peer.session.closing.code == (CloseCode.RESTART if fatal else CloseCode.NORMAL)


def test_winding_down_ends_an_idle_connection():
    peer = Peer()
    peer.session.wind_down("bye")
    assert peer.session.closing.code == CloseCode.RESTART
    assert [(m["code"], m["fatal"]) for m in peer.sent()] == [("shutting_down", True)]


@pytest.mark.parametrize("size", [200, 3000])
def test_messages_that_are_too_big(size):
    peer = Peer(Limits(message_bytes=100, config_message_bytes=2000))
    peer.raw('{"type":"input.text","text":"' + "x" * size + '"}')
    assert peer.sent()[0]["code"] == "message_too_big" and peer.session.closing.code == CloseCode.TOO_BIG


def test_a_config_may_be_bigger_than_other_messages():
    peer = Peer(Limits(message_bytes=100, config_message_bytes=2000))
    peer.say("session.config", voice="bo", language="d" * 200)
    assert peer.sent()[0]["code"] == "bad_value" and peer.session.closing is None


REFERENCE = {"ref_audio": "data:audio/wav;base64,AAAA", "ref_text": "What was said."}


def test_a_reference_is_handed_over_once_and_told_by_its_digest():
    peer = Peer()
    (event,) = peer.say("session.config", **REFERENCE)
    assert isinstance(event, ReferenceGiven) and event.reference.audio == bytes(3)
    (configured,) = peer.sent()
    assert configured["config"]["ref_audio"] == event.reference.digest and configured["config"]["voice"] is None
    assert peer.say("session.config", top_k=7) == []
    opened, _ = peer.say("input.text", text="Hello.")
    assert opened.config.ref_audio == event.reference.digest
    peer.session.refuse_reference(ErrorCode.BAD_VALUE, "ref_audio: it is silent")
    peer.session.failed(0, ErrorCode.BAD_VALUE, "ref_audio: it is silent")
    _, refused, failed = peer.sent()
    assert refused["code"] == failed["code"] == "bad_value" and not refused["fatal"]
    assert "context_id" not in refused and failed["context_id"] == "_0"


def test_a_context_may_have_another_voice_than_the_reference():
    peer = Peer()
    peer.say("session.config", **REFERENCE)
    opened, _ = peer.say("input.text", text="Hello.", voice="bo")
    assert (opened.config.voice, opened.config.ref_audio) == ("bo", None)


def test_a_voice_that_was_deleted_is_unknown_to_the_next_context():
    peer, voices = Peer(), ["ada", "bo"]
    rules = replace(RULES, voices=voices)
    peer.session = ServerSession(HELLO, rules, Limits(), now=0.0, dialect=Native())
    peer.say("session.config", voice="bo")
    first, _ = peer.say("input.text", text="Hello.", context_id="a")
    voices.remove("bo")
    assert first.config.voice == "bo"
    assert peer.say("input.text", text=" More.", context_id="a") == [TextReceived(0, " More.")]
    assert peer.say("input.text", text="Hello.", context_id="b") == []
    failed = peer.sent()[-1]
    assert (failed["code"], failed["context_id"]) == ("unknown_voice", "b")
    voices.append("cleo")
    opened, _ = peer.say("input.text", text="Hello.", context_id="c", voice="cleo")
    assert opened.config.voice == "cleo"
