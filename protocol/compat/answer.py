"""The answer to a request that asks for speech and gets it as the body of the answer: one context, and no words."""

from __future__ import annotations

from dataclasses import dataclass

from protocol.codes import ErrorCode
from protocol.context import Context
from protocol.dialect import Dialect
from protocol.messages import ClientMessage, Metrics, Usage


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no speech, or no more of it."""

    code: ErrorCode
    message: str


class Answer(Dialect):
    """Audio as it is.  Frames are pieces of the body.

    `failure`: what ended it, if all did not go well.  `is_over`: no more frames come.
    """

    def __init__(self, content_type: str) -> None:
        super().__init__()
        self.content_type = content_type
        self.failure: Failure | None = None
        self.is_over = False

    @property
    def is_whole(self) -> bool:
        """Whoever has read the body to its end knows how it ended.  Else the connection has to break, to say it."""
        return self.failure is None

    def hear(self, data: str) -> list[ClientMessage]:
        raise NotImplementedError("a request is read before there is a session")

    def error(self, code: ErrorCode, message: str, fatal: bool = False, **given: object) -> None:
        if not self.is_over:
            self.failure, self.is_over = Failure(code, message), True

    def audio(self, context: Context, data: bytes, samples: int) -> None:
        if data:
            self._say_binary(data)

    def session_done(self, context: Context, reason: str, seed: int, usage: Usage, metrics: Metrics) -> None:
        self.is_over = True
