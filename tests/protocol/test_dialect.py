"""What any other dialect can rely on: several messages heard in one, an end that drains, and refusals that end all."""

from __future__ import annotations

from protocol_session import HELLO, NOTHING, RULES

from protocol.codes import CloseCode, ErrorCode, FatalRefusal
from protocol.context import Context
from protocol.conversation import Closing
from protocol.dialect import Dialect
from protocol.events import ContextCancelled, ContextOpened, InputEnded, TextReceived
from protocol.limits import Limits
from protocol.messages import Cancel, ClientMessage, Done, Finish, Ping, Text
from protocol.session import ServerSession


class Plain(Dialect):
    """A word is spoken as one utterance; `.` ends all, `!` is for silence, `?` is wrong."""

    heard = 0

    def hear(self, data: str) -> list[ClientMessage]:
        if data == "?":
            raise FatalRefusal(ErrorCode.BAD_MESSAGE, CloseCode.POLICY, "no questions")
        if data == ".":
            return [Finish()]
        if data == "!":
            return [Cancel(), Ping("silent")]
        self.heard += 1
        return [Text(data, f"u{self.heard}", {"response_format": "mulaw"}), Done(f"u{self.heard}")]

    def pong(self, label: str | None) -> None:
        self._say_text(label.encode())

    def error(self, code: ErrorCode, message: str, fatal: bool = False, **given: object) -> None:
        self._say_text(f"{code}: {message}".encode(), error=code)

    def audio(self, context: Context, data: bytes, samples: int) -> None:
        self._say_binary(data)


def opened() -> ServerSession:
    return ServerSession(HELLO, RULES, Limits(), now=0.0, dialect=Plain())


def said(session: ServerSession) -> list[bytes]:
    return [frame.data for frame in session.take_frames()]


def speak(session: ServerSession, number: int, text: str) -> None:
    session.audio_start(number)
    session.audio_segment(number, text, text)
    session.audio(number, b"abcd", 4, now=0.0)
    session.done(number, "done", 7, *NOTHING)


def test_one_message_may_mean_several_things():
    session = opened()
    started, text, ended = session.receive_text(b"Hello.", now=0.0)
    assert isinstance(started, ContextOpened) and started.config.response_format == "mulaw"
    assert (text, ended) == (TextReceived(0, "Hello."), InputEnded(0, "done"))
    speak(session, 0, "Hello.")
    assert said(session) == [b"abcd"]


def test_what_is_open_is_spoken_before_the_end():
    session = opened()
    session.receive_text(b"Hello.", now=0.0)
    assert session.receive_text(b".", now=0.0) == []
    assert session.closing is None
    assert session.receive_text(b"More.", now=0.0) == []
    speak(session, 0, "Hello.")
    assert session.closing == Closing(CloseCode.NORMAL, "")
    late = b"context_ended: no more input is taken: the client has said that it is over"
    assert said(session) == [late, late, b"abcd"]


def test_an_end_with_nothing_open_closes_at_once():
    session = opened()
    session.receive_text(b".", now=0.0)
    assert session.closing == Closing(CloseCode.NORMAL, "")


def test_a_pong_behind_a_cancel_is_a_fence():
    session = opened()
    session.receive_text(b"Hello.", now=0.0)
    session.receive_text(b"World.", now=0.0)
    assert session.receive_text(b"!", now=0.0) == [ContextCancelled(0), ContextCancelled(1)]
    assert said(session) == [b"silent"]


def test_a_fatal_refusal_ends_all():
    session = opened()
    session.receive_text(b"Hello.", now=0.0)
    assert session.receive_text(b"?", now=0.0) == [ContextCancelled(0)]
    assert said(session) == [b"bad_message: no questions"]
    assert session.closing == Closing(CloseCode.POLICY, ErrorCode.BAD_MESSAGE)


class OneForAll(Plain):
    """A context that fails takes the connection with it."""

    failure_ends_all = True

    def closing_reason(self, code: ErrorCode, message: str) -> str:
        return f"sorry, {code}"

    def error(self, code: ErrorCode, message: str, fatal: bool = False, **given: object) -> None:
        if fatal:
            super().error(code, message)


def test_a_failure_may_end_the_connection():
    session = ServerSession(HELLO, RULES, Limits(), now=0.0, dialect=OneForAll())
    session.receive_text(b"Hello.", now=0.0)
    session.failed(0, ErrorCode.ENGINE_FAILED, "broken")
    assert said(session) == [b"engine_failed: broken"]
    assert session.closing == Closing(CloseCode.INTERNAL, "sorry, engine_failed")


def test_other_contexts_end_with_it():
    session = ServerSession(HELLO, RULES, Limits(), now=0.0, dialect=OneForAll())
    session.receive_text(b"Hello.", now=0.0)
    session.receive_text(b"World.", now=0.0)
    session.failed(0, ErrorCode.ENGINE_FAILED, "broken")
    assert session.closing is None, "who has to free the other one is told by the next events"
    assert session.tick(now=0.0) == [ContextCancelled(1)]
    assert said(session) == [b"engine_failed: broken"]
    assert session.closing == Closing(CloseCode.INTERNAL, "sorry, engine_failed")
    assert session.tick(now=0.0) == []


def test_a_context_that_cannot_open_ends_it_too():
    session = ServerSession(HELLO, RULES, Limits(contexts=1), now=0.0, dialect=OneForAll())
    session.receive_text(b"Hello.", now=0.0)
    assert session.receive_text(b"World.", now=0.0)[-1:] == [ContextCancelled(0)]
    assert session.closing == Closing(CloseCode.INTERNAL, "sorry, too_many_contexts")


def test_what_is_open_is_spoken_when_the_server_ends():
    session = ServerSession(HELLO, RULES, Limits(), now=0.0, dialect=OneForAll())
    session.receive_text(b"Hello.", now=0.0)
    session.wind_down("good night")
    session.receive_text(b"World.", now=0.0)
    assert session.closing is None
    speak(session, 0, "Hello.")
    assert session.closing == Closing(CloseCode.RESTART, "sorry, shutting_down")
