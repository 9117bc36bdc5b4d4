"""The client's core against the server's core, without I/O."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protocol_session import Peer, Speaker

from protocol.client_context import ClientContext
from protocol.client_errors import ConnectionLost, ContextEnded, ContextFailed, ProtocolViolation
from protocol.client_session import ClientSession
from protocol.framing import AudioHeader
from protocol.limits import Limits
from protocol.text import mended

LIMITS = Limits(contexts=2, text_characters=20, pending_flushes=2)


class Pair:
    """Both sides; the server speaks each text as one segment, as many samples as characters, when it is its turn.

    `response_format`: pcm, or an encoded one, of which each segment brings two bytes a sample and the end one byte.
    """

    def __init__(self, response_format: str = "pcm") -> None:
        self.client = ClientSession({"response_format": response_format})
        self.encoded = response_format != "pcm"
        self.connect()

    def connect(self) -> None:
        """A new connection, configured."""
        self.peer = Peer(LIMITS)
        self.speaker = Speaker(self.peer, self.encoded)
        self.client.receive_text(json.dumps(self.peer.ready))
        self.exchange()

    def lose(self) -> None:
        """The connection breaks; what is on its way is lost."""
        self.client.disconnected(ConnectionLost("connection_lost", "scripted"))
        self.connect()

    def to_server(self) -> None:
        """All that the client has to say arrives."""
        self.client.pump()
        for message in self.client.take():
            self.speaker.act(self.peer.session.receive_text(message, self.peer.now))

    def to_client(self) -> None:
        """All that the server has said arrives."""
        for message in self.peer.sent():
            if isinstance(message, bytes):
                self.client.receive_binary(message)
            else:
                assert message.get("code") in (None, "engine_failed", "context_ended", "shutting_down"), message
                self.client.receive_text(json.dumps(message))

    def exchange(self) -> None:
        self.to_server()
        self.to_client()

    def speak(self) -> bool:
        """The next thing of the context in front; False if there is none."""
        return self.speaker.step()

    def fail(self) -> None:
        """Synthesis of the context in front fails."""
        if (front := self.peer.session.front) is not None:
            self.speaker.fail(front)

    def shut_down(self) -> None:
        """The server ends at once; the client finds another one."""
        self.speaker.act(self.peer.session.shut_down("bye"))
        self.to_client()
        self.lose()

    def wind_down(self) -> None:
        """The server takes nothing new, and ends when what it speaks has ended."""
        self.peer.session.wind_down("bye")

    def leave_ended(self) -> None:
        """Once the server has closed, the client finds another one."""
        if self.peer.session.closing is not None:
            self.to_client()
            self.lose()

    def settle(self) -> None:
        """Until neither side has anything to do."""
        self.exchange()
        while self.speak() or self.client.pump():
            self.exchange()


def taken(context: ClientContext) -> int:
    return sum(len(chunk.data) // 2 for chunk in context.chunks)


def test_a_long_text_is_paced_and_nothing_is_lost():
    pair, text = Pair(), "twenty characters are not enough for this text " * 3
    context = pair.client.open()
    context.push(text)
    label = context.flush()
    context.done()
    pair.settle()
    assert taken(context) == context.result.samples == context.flushed[label] == len(text)
    assert context.heard() == (text, "")


def test_half_characters_are_joined():
    pair = Pair()
    context = pair.client.open()
    context.push("\ud83d")
    context.push("\ude00 \ud83d")
    context.done()
    pair.settle()
    assert context.heard() == ("😀 �", "")


@pytest.mark.parametrize(
    "change",
    [
        {"context_number": 1},
        {"sequence": 5},
        {"samples": 7},
        {"start": 3},
    ],
)
def test_audio_that_does_not_fit_is_a_violation(change: dict[str, int]):
    pair = Pair()
    pair.client.open().push("word")
    pair.to_server()
    pair.speak()
    *control, audio = pair.peer.sent()
    for message in control:
        pair.client.receive_text(json.dumps(message))
    fields = {"context_number": 0, "sequence": 0, "samples": 4, "start": 0} | change
    with pytest.raises(ProtocolViolation):
        pair.client.receive_binary(AudioHeader(**fields).pack() + audio[24:])


def test_positions_of_encoded_audio_are_known_at_the_borders_of_segments():
    pair = Pair("opus")
    context = pair.client.open()
    context.push("one, ")
    pair.to_server()
    context.push("two.")
    pair.to_server()
    seen = []
    while pair.speak():
        pair.to_client()
        seen.append((context.record.samples, "".join(context.heard().text_spoken)))
    assert seen == [(0, ""), (5, "one, ")]
    context.done()
    pair.settle()
    assert [(chunk.start, chunk.samples, chunk.data) for chunk in context.chunks] == [
        (0, None, bytes(10)), (5, None, bytes(8)), (5, None, b"!"),
    ]  # fmt: skip
    assert context.result.samples == 9 and context.heard() == ("one, two.", "")


def test_encoded_audio_before_a_segment_is_a_violation():
    pair = Pair("opus")
    pair.client.open().push("word")
    pair.to_server()
    pair.peer.session.audio_start(0)
    pair.to_client()
    with pytest.raises(ProtocolViolation, match="before a segment"):
        pair.client.receive_binary(b"audio")


def test_positions_of_encoded_audio_do_not_go_back():
    pair = Pair("opus")
    context = pair.client.open()
    for text in ("one, ", "two."):
        context.push(text)
        pair.to_server()
        pair.speak()
    pair.to_client()
    end = {"type": "audio.done", "context_id": "turn-1", "samples": 4}  # the second segment begins at 5
    with pytest.raises(ProtocolViolation, match="at sample 4, but 5 came"):
        pair.client.receive_text(json.dumps(end))


@pytest.mark.parametrize("message", [b"", b"A8", bytes(30)])
def test_audio_without_a_header_is_a_violation(message: bytes):
    with pytest.raises(ProtocolViolation):
        Pair().client.receive_binary(message)


@pytest.mark.parametrize(
    "message", ["", "[]", "null", "{}", '{"type": "session.ready"}', '{"type": ["a"]}', '{"type": "error"}']
)
def test_what_cannot_be_read_is_a_violation(message: str):
    with pytest.raises(ProtocolViolation):
        Pair().client.receive_text(message)


def test_a_newer_server_may_say_more():
    pair = Pair()
    pair.client.receive_text('{"type": "session.weather", "context_id": "turn-1"}')
    assert not pair.client.contexts


def test_what_a_server_that_ends_does_not_take_is_said_to_the_next():
    pair = Pair()
    spoken, queued = pair.client.open(), pair.client.open()
    spoken.push("Being spoken.")
    pair.exchange()
    pair.speak()
    pair.exchange()
    assert spoken.spoke
    pair.peer.session.wind_down("bye")
    queued.push("Refused, ")
    pair.exchange()
    queued.push("and more of it.")  # must not be said here
    queued.done()
    spoken.push(" Its end.")
    spoken.done()
    pair.settle()
    assert spoken.result is not None and not queued.ended and pair.peer.session.closing
    pair.lose()
    pair.settle()
    assert queued.result is not None and queued.heard() == ("Refused, and more of it.", "")
    assert pair.client.contexts == []


def test_what_was_spoken_when_the_server_ends_is_not_said_again():
    pair = Pair()
    context = pair.client.open()
    context.push("Being spoken.")
    pair.exchange()
    pair.speak()
    pair.exchange()
    pair.peer.session.shut_down("bye")
    pair.to_client()
    assert context.ended and isinstance(context.error, ContextFailed) and context.error.code == "shutting_down"


def test_a_context_that_breaks_connections_is_given_up():
    pair = Pair()
    context = pair.client.open()
    context.push("word")
    for _ in range(4):
        pair.to_server()
        pair.lose()
    assert isinstance(context.error, ConnectionLost) and not pair.client.contexts


TEXTS = st.sampled_from(["", "word ", "two words. ", "x" * 30, "\ud83d", "\ude00"])
SLOTS = st.integers(0, 2)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), SLOTS, TEXTS),
        st.tuples(st.sampled_from(["flush", "done"]), SLOTS, st.none()),
        st.tuples(st.just("cancel"), SLOTS, st.sampled_from([None, 0.0, 0.3, 1e6])),
        st.tuples(st.sampled_from(["to_server", "to_client", "speak", "speak"]), st.none(), st.none()),
        st.tuples(st.sampled_from(["fail", "lose", "shut_down", "wind_down", "leave_ended"]), st.none(), st.none()),
    ),
    min_size=10,
    max_size=80,
)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_the_cores_agree_whatever_is_said(steps):
    """Each context ends once and for a reason, its samples are all there, and all its text is accounted for."""
    check_agreement(Pair(), steps)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_the_cores_agree_on_encoded_audio(steps):
    check_agreement(Pair("opus"), steps)


def check_agreement(pair: Pair, steps: list[tuple]) -> None:
    contexts = [pair.client.open() for _ in range(3)]
    pushed, ended = ["", "", ""], {}
    for kind, slot, value in steps:
        if slot is None:
            getattr(pair, kind)()
        elif kind == "cancel":
            pair.client.cancel(contexts[slot], value)
        else:
            try:
                getattr(contexts[slot], kind)(*([] if value is None else [value]))
                pushed[slot] += value or ("|" if kind == "flush" else "")
            except (ContextEnded, ContextFailed, ConnectionLost):
                pass
        for context in contexts:
            if context.ended:
                outcome = ended.setdefault(context.name, (context.result, type(context.error)))
                assert outcome == (context.result, type(context.error)), "it ended twice"
    for context in contexts:
        try:
            context.done()
        except (ContextEnded, ContextFailed, ConnectionLost):
            pass
    pair.settle()
    pair.leave_ended()
    pair.settle()
    assert not pair.client.contexts and not pair.peer.session.open_contexts
    for context, text in zip(contexts, pushed, strict=True):
        _check(context, text, lost=pair.encoded and context.error is not None)


def _check(context: ClientContext, pushed: str, lost: bool) -> None:
    """`lost`: encoded audio came whose length was never told, as the segment has not ended."""
    assert context.ended and not context.queue
    assert [context.result, context.cancelled, context.error] != [None, None, None]
    if context.cancelled is None:
        assert taken(context) >= context.record.samples if lost else taken(context) == context.record.samples
    else:
        assert not context.chunks
        assert context.cancelled.text_spoken + context.cancelled.text_remaining == "".join(context.heard())
    whole = _as_spoken(pushed)
    assert "".join(context.heard()) == whole
    if context.result is not None:
        assert context.heard() == (whole, "") and context.result.samples == len(whole)


def _as_spoken(pushed: str) -> str:
    """As it is spoken: a flush and the end complete what is there."""
    return "".join(mended(piece) for piece in pushed.split("|"))
