"""Deepgram's first speech protocol (Aura), `/v1/speak`: text goes in, a flush brings out all of its audio.

Each flush ends a context, and the text behind it opens the next one.  What may be waited for is answered behind the
audio: `Flushed` by the end of a context, `Cleared` by a ping that follows the cancel.
"""

from __future__ import annotations

from protocol.compat.deepgram.messages import KEEP_ALIVE, DeepgramDialect, model_uuid
from protocol.config import SessionConfig
from protocol.context import Context
from protocol.limits import Limits
from protocol.messages import Cancel, ClientMessage, Done, Finish, Hello, Metrics, Ping, Text, Usage

_CLEARED = "cleared"


class Aura(DeepgramDialect):
    """`sequence_id` counts the answers, from 0."""

    kinds = ("Speak", "Flush", "Clear", "Close", KEEP_ALIVE)

    def __init__(self, request_id: str, model: str) -> None:
        super().__init__(request_id, model)
        self._contexts = 0
        self._taking: str | None = None  # the context that takes text
        self._flushed: set[str] = set()  # contexts whose end is the answer to a flush
        self._answers = 0

    def hear(self, data: str) -> list[ClientMessage]:
        kind, fields = self._read(data)
        if kind == "Speak":
            return [Text(self._text(fields), self._context())]
        if kind == "Flush":
            return self._flush()
        if kind == "Clear":
            self._taking = None
            self._flushed.clear()
            return [Cancel(), Ping(_CLEARED)]
        return [Finish()] if kind == "Close" else []

    def _flush(self) -> list[ClientMessage]:
        """Without text it is answered too, in its turn: a context without any opens and ends."""
        name = self._context()
        self._taking = None
        self._flushed.add(name)
        return [Done(name)]

    def _context(self) -> str:
        if self._taking is None:
            self._taking = f"flush-{self._contexts}"
            self._contexts += 1
        return self._taking

    # What the session says ------------------------------------------------------------------------------------------

    def ready(self, hello: Hello, config: SessionConfig, limits: Limits) -> None:
        self._hello = hello
        self._say_metadata()

    def progress(self, context: Context, state: str, queue_position: int | None) -> None:
        """Clients take the message at any time, and those that wait for something know that it will come."""
        if self._beats():
            self._say_metadata()

    def pong(self, label: str | None) -> None:
        self._answer("Cleared")

    def fell_silent(self, context: Context) -> None:
        if context.name == self._taking:
            self._taking = None

    def audio(self, context: Context, data: bytes, samples: int) -> None:
        self._say_binary(data)

    def session_done(self, context: Context, reason: str, seed: int, usage: Usage, metrics: Metrics) -> None:
        if context.name in self._flushed:
            self._flushed.discard(context.name)
            self._answer("Flushed")

    def _answer(self, kind: str) -> None:
        self._say(kind, sequence_id=self._answers)
        self._answers += 1

    def _say_metadata(self) -> None:
        model = self._hello.model
        self._say(
            "Metadata",
            request_id=self._request_id,
            model_name=self._model,
            model_version=model,
            model_uuid=model_uuid(model),
        )
