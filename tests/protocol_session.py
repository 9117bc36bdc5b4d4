"""A server session for tests, and what it says."""

from __future__ import annotations

import json

from protocol.codes import ErrorCode
from protocol.config import ConfigRules, SessionConfig
from protocol.events import ContextCancelled, ContextOpened, Event, FlushRequested, InputEnded, TextReceived
from protocol.limits import Limits
from protocol.messages import Hello, Metrics, Usage, Voice
from protocol.native import Native
from protocol.session import ServerSession

DEFAULTS = SessionConfig(voice="ada", seed=42, temperature=0.7, top_k=50, top_p=0.9, max_new_tokens=1024)
RULES = ConfigRules(DEFAULTS, voices=("ada", "bo"), languages=("de", "en"), most_new_tokens=2048)
HELLO = Hello("s1", "model", (Voice("ada", "en", "calm"),), 44100, 2048, 100)
NOTHING = (Usage(0, 0, 0, 0.0), Metrics(None, None, None))


class Peer:
    """A session whose frames are read as messages: dicts, and bytes for audio."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.session = ServerSession(HELLO, RULES, limits or Limits(), now=0.0, dialect=Native())
        self.now = 0.0
        self.ready = self.sent()[0]

    def say(self, kind: str, **fields: object) -> list:
        """A client's message -> the events."""
        return self.raw(json.dumps({"type": kind, **fields}))

    def raw(self, text: str) -> list:
        """Any text of a client -> the events."""
        return self.session.receive_text(text.encode(), self.now)

    def sent(self) -> list[dict | bytes]:
        """What the session has said since the last look."""
        return [frame.data if frame.binary else json.loads(frame.data) for frame in self.session.take_frames()]

    def types(self) -> list[str]:
        """The types of `sent`, "audio" for a binary message."""
        return ["audio" if isinstance(message, bytes) else message["type"] for message in self.sent()]

    def speak(self, number: int, text: str, samples: int = 100, total: int | None = None) -> None:
        """One segment with one binary message."""
        self.session.audio_segment(number, text, text.strip())
        self.session.audio(number, bytes(2 * samples), samples, self.now, total)


class Speaker:
    """The program around the session, as plain as can be: it speaks each text as one segment, when it is its turn.

    `encoded`: in a format of which the end of a context brings one byte more.
    """

    def __init__(self, peer: Peer, encoded: bool = False) -> None:
        self.peer, self._encoded = peer, encoded
        self.work: dict[int, list[Event]] = {}  # of each open context what is to be said
        self._started: set[int] = set()

    def act(self, events: list[Event]) -> None:
        """What the session has told."""
        for event in events:
            match event:
                case ContextOpened(number):
                    self.work[number] = []
                case TextReceived(number) | FlushRequested(number) | InputEnded(number):
                    self.work[number].append(event)
                case ContextCancelled(number):
                    del self.work[number]

    def step(self) -> bool:
        """The next thing of the context in front; False if there is none."""
        session, front = self.peer.session, self.peer.session.front
        if front is None or not self.work[front]:
            return False
        match self.work[front].pop(0):
            case TextReceived(_, text):
                if front not in self._started:
                    session.audio_start(front)
                    self._started.add(front)
                self.peer.speak(front, text, samples=len(text))
                session.text_taken(front, len(text))
            case FlushRequested():
                session.flushed(front)
            case InputEnded(_, reason):
                if self._encoded and front in self._started:
                    session.audio_rest(front, b"!", self.peer.now)
                session.done(front, reason, 1, *NOTHING)
                del self.work[front]
        return True

    def fail(self, number: int) -> None:
        """Synthesis of an open context fails."""
        self.peer.session.failed(number, ErrorCode.ENGINE_FAILED, "scripted")
        del self.work[number]
