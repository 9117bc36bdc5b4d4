"""A server session that speaks one of Deepgram's protocols, for tests."""

from __future__ import annotations

from dataclasses import replace

from protocol_session import HELLO, RULES, Peer, Speaker

from protocol.dialect import Dialect
from protocol.limits import Limits
from protocol.session import ServerSession

RATE = 8000  # samples a second; a character lasts one sample


class DeepgramPeer(Peer):
    """Each message is acted upon by a `Speaker`, which speaks when it is told to."""

    def __init__(self, dialect: Dialect, limits: Limits | None = None) -> None:
        rules = replace(RULES, defaults=replace(RULES.defaults, sample_rate=RATE))
        self.session = ServerSession(HELLO, rules, limits or Limits(), now=0.0, dialect=dialect)
        self.now = 0.0
        self.ready = self.sent()[0]
        self.speaker = Speaker(self)

    def raw(self, text: str) -> list:
        events = super().raw(text)
        self.speaker.act(events)
        return events

    def speak(self, number: int, text: str, samples: int = 100, total: int | None = None) -> None:
        """How long a segment is, is known at once."""
        super().speak(number, text, samples, total or samples)

    def pass_time(self, seconds: float) -> None:
        """Nothing is said for so long."""
        self.now += seconds
        self.speaker.act(self.session.tick(self.now))

    def spoken(self, *steps: int) -> list[dict | bytes]:
        """What is sent until all, or so many things, have been spoken."""
        for _ in range(*steps) if steps else iter(int, 1):
            if not self.speaker.step():
                break
        return self.sent()
