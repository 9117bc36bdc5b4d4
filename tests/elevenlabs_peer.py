"""A session that speaks ElevenLabs' protocol, and its client's view of it."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field

from protocol_session import HELLO, RULES, Speaker

from protocol.compat.elevenlabs.speaking import Speaking
from protocol.limits import Limits
from protocol.session import ServerSession


@dataclass
class Heard:
    """What the client was told of one context."""

    audio: bytes = b""
    chars: str = ""
    normalized: str = ""
    finals: int = 0
    errors: list[dict] = field(default_factory=list)


class ElevenPeer:
    """The client's side of a session in which `Speaker` speaks each text as one segment of a sample a character."""

    def __init__(self, dialect: Speaking, limits: Limits | None = None) -> None:
        self.session = ServerSession(HELLO, RULES, limits or Limits(), now=0.0, dialect=dialect)
        self.now = 0.0
        self.messages: list[dict] = []
        self.speaker = Speaker(self)

    def say(self, **fields: object) -> list:
        """A message of the client -> the events."""
        return self.raw(json.dumps(fields))

    def raw(self, text: str) -> list:
        events = self.session.receive_text(text.encode(), self.now)
        self.speaker.act(events)
        return events

    def speak(self, number: int, text: str, samples: int) -> None:
        """One segment with one message of audio: its samples are its text."""
        self.session.audio_segment(number, text, text.strip())
        self.session.audio(number, text.encode("utf-16-le"), samples, self.now, samples)

    def speak_all(self) -> None:
        """All that can be said now."""
        while self.speaker.step():
            pass

    def received(self) -> list[dict]:
        """All messages so far."""
        for frame in self.session.take_frames():
            assert not frame.binary
            self.messages.append(json.loads(frame.data))
        return self.messages

    def heard(self) -> dict[str | None, Heard]:
        """All that was said so far, of each context; each id stands for one."""
        contexts: dict[str | None, Heard] = {}
        for message in self.received():
            heard = contexts.setdefault(message.get("contextId"), Heard())
            if "error" in message:
                heard.errors.append(message)
                continue
            assert not heard.finals or message["isFinal"] is None, "nothing follows the last message of a context"
            heard.audio += base64.b64decode(message["audio"] or "")
            heard.finals += message["isFinal"] is True
            heard.chars += "".join((message["alignment"] or {"chars": ""})["chars"])
            heard.normalized += "".join((message["normalizedAlignment"] or {"chars": ""})["chars"])
        return contexts
