"""How a protocol is written: what the messages of its client mean to the session, and how the session's words read.

The session decides what may be said and when; a dialect only translates.  `protocol/native.py` is our own protocol, as
SPEC.md has it; those of other servers' clients are in `protocol/compat/`.
"""

from __future__ import annotations

from protocol.codes import ErrorCode
from protocol.config import SessionConfig
from protocol.context import Context
from protocol.limits import Limits
from protocol.messages import ClientMessage, Frame, Hello, Metrics, Usage


class Dialect:
    """One for each connection.  What has no words in a protocol is not said: most methods do nothing by default.

    `hear`, `error` and `audio` are what every protocol has.  `failure_ends_all`: it has no words for a context that
    fails by itself, so that the connection ends with it.
    """

    failure_ends_all = False

    def __init__(self) -> None:
        self._frames: list[Frame] = []

    def __len__(self) -> int:
        """Frames that wait."""
        return len(self._frames)

    def take(self) -> list[Frame]:
        """All queued frames, in order."""
        frames, self._frames = self._frames, []
        return frames

    def _say_text(self, data: bytes, error: ErrorCode | None = None) -> None:
        self._frames.append(Frame(data, binary=False, error=error))

    def _say_binary(self, data: bytes) -> None:
        self._frames.append(Frame(data, binary=True))

    # What the client says -------------------------------------------------------------------------------------------

    def hear(self, data: str) -> list[ClientMessage]:
        """What one text message means, in order.  Raises Refusal: it changes nothing; FatalRefusal: it ends all.

        Ids of contexts are the dialect's to choose; each is used once.  A `Ping` comes back as `pong`, in its place
        among all else that is said: after a `Cancel`, nothing of the context follows it.
        """
        raise NotImplementedError

    # What the session says: see the messages of the same names in SPEC.md --------------------------------------------

    def ready(self, hello: Hello, config: SessionConfig, limits: Limits) -> None:
        """The first thing said."""

    def configured(self, config: SessionConfig) -> None:
        """A `Config` was accepted."""

    def pong(self, label: str | None) -> None:
        """The answer to a `Ping`."""

    def progress(self, context: Context, state: str, queue_position: int | None) -> None:
        """A sign of life of a silent context."""

    def error(self, code: ErrorCode, message: str, fatal: bool = False, **given: object) -> None:
        """`given`: context_id (which it ends), about_context_id, retry_after_ms, as far as they are not None.

        `fatal`: the socket is closed next.
        """
        raise NotImplementedError

    def closing_reason(self, code: ErrorCode, message: str) -> str:
        """What the close frame tells of a fatal error; at most 123 bytes (RFC 6455, section 5.5)."""
        return code

    def fell_silent(self, context: Context) -> None:
        """The client has said nothing of the context for too long: it takes no more, and is spoken to its end."""

    def audio_start(self, context: Context) -> None:
        """The context's audio follows."""

    def audio_segment(self, context: Context, spoken: str) -> None:
        """The next audio speaks the last segment of the context's record; `spoken` is what the model was given."""

    def audio(self, context: Context, data: bytes, samples: int) -> None:
        """The next `samples` samples, at the context's rate and in its format; they are counted after this call.

        `data` is empty if an encoder has kept all of it, `samples` is 0 if it gives what it kept.
        """
        raise NotImplementedError

    def flushed(self, name: str | None, flush_id: str | None, end_sample: int) -> None:
        """All audio of a `Flush` is sent."""

    def audio_done(self, context: Context, error: ErrorCode | None) -> None:
        """No more audio of the context, which had some."""

    def session_done(self, context: Context, reason: str, seed: int, usage: Usage, metrics: Metrics) -> None:
        """The context has ended, all of it is sent."""

    def cancelled(self, context: Context, spoken: str, remaining: str) -> None:
        """The context has ended by a `Cancel`, or because the connection ends."""
