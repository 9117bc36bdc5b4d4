"""One context: where its input and its output stand, in two literal tables, and what it must answer for."""

from __future__ import annotations

from collections import deque
from enum import Enum, auto

from protocol.codes import LocalProtocolError
from protocol.config import SessionConfig
from protocol.messages import MessageType
from protocol.record import SpokenRecord
from protocol.text import join_halves, mended


class Input(Enum):
    """What the client may still say."""

    OPEN = auto()
    DRAINING = auto()


class Output(Enum):
    """What was sent of it."""

    SILENT = auto()  # no audio.start yet
    BETWEEN = auto()  # no audio may follow before the next audio.segment
    SPEAKING = auto()
    FINISHED = auto()  # audio.done was sent
    ENDED = auto()  # the terminal message was sent


# A message that has no entry is refused with context_ended.
INPUT_STEPS = {
    (Input.OPEN, MessageType.TEXT): Input.OPEN,
    (Input.OPEN, MessageType.FLUSH): Input.OPEN,
    (Input.OPEN, MessageType.DONE): Input.DRAINING,
}

# A message that has no entry is a bug of this side.
OUTPUT_STEPS = {
    (Output.SILENT, "audio.start"): Output.BETWEEN,
    (Output.SILENT, "input.flushed"): Output.SILENT,
    (Output.SILENT, "session.done"): Output.ENDED,
    (Output.SILENT, "error"): Output.ENDED,
    (Output.SILENT, "input.cancelled"): Output.ENDED,
    (Output.BETWEEN, "audio.segment"): Output.SPEAKING,
    (Output.BETWEEN, "input.flushed"): Output.BETWEEN,
    (Output.BETWEEN, "audio rest"): Output.BETWEEN,
    (Output.BETWEEN, "audio.done"): Output.FINISHED,
    (Output.BETWEEN, "input.cancelled"): Output.ENDED,
    (Output.SPEAKING, "audio"): Output.SPEAKING,
    (Output.SPEAKING, "audio rest"): Output.BETWEEN,
    (Output.SPEAKING, "audio.segment"): Output.SPEAKING,
    (Output.SPEAKING, "input.flushed"): Output.BETWEEN,
    (Output.SPEAKING, "audio.done"): Output.FINISHED,
    (Output.SPEAKING, "input.cancelled"): Output.ENDED,
    (Output.FINISHED, "session.done"): Output.ENDED,
    (Output.FINISHED, "error"): Output.ENDED,
}


class Context:
    """Times are those of the session's clock.  `name` is the wire's id; `client_id` None for an unnamed context."""

    def __init__(self, number: int, client_id: str | None, config: SessionConfig, now: float) -> None:
        self.number, self.client_id, self.config = number, client_id, config
        self.name = client_id if client_id is not None else f"_{number}"
        self.input, self.output = Input.OPEN, Output.SILENT
        self.refused = False  # context_ended was said once
        self.heard_of, self.shown_at = now, now  # last message of the client, last sign of life to it
        self.record = SpokenRecord(config.rate)
        self.flushes: deque[str | None] = deque()
        self.buffered = 0  # characters received and not yet being spoken
        self.messages = self.bytes = 0  # binary ones sent, and their audio
        self._half = ""

    def accepts(self, kind: MessageType) -> bool:
        """Whether the input's state takes this message."""
        return (self.input, kind) in INPUT_STEPS

    def take(self, kind: MessageType) -> None:
        """Move the input's state; the message was accepted."""
        self.input = INPUT_STEPS[self.input, kind]

    def send(self, message: str) -> None:
        """Move the output's state.  Raises LocalProtocolError where the order on the wire forbids the message."""
        step = OUTPUT_STEPS.get((self.output, message))
        if step is None:
            raise LocalProtocolError(f"{message} is not allowed while context {self.number} is {self.output.name}")
        self.output = step

    def append(self, text: str, complete: bool = False) -> str:
        """Take text in; returns what is whole.  A trailing high surrogate waits, unless `complete`."""
        whole, self._half = join_halves(self._half, text)
        if complete:
            whole, self._half = whole + mended(self._half), ""
        self.buffered += len(whole)
        self.record.receive(whole)
        return whole

    def count(self, size: int, samples: int, segment_samples: int | None, now: float) -> None:
        """A binary message of `size` bytes of audio was sent; none if that is 0: its samples come with later ones."""
        self.record.add(samples, segment_samples)
        if size:
            self.messages += 1
            self.bytes += size
            self.shown_at = now

    def check_drained(self) -> None:
        """Raises LocalProtocolError if something is still owed to the client."""
        if self.input is not Input.DRAINING:
            raise LocalProtocolError(f"context {self.number} still takes input")
        if self.flushes:
            raise LocalProtocolError(f"context {self.number} has {len(self.flushes)} unanswered flushes")
        if self.output is not Output.SILENT and self.record.pending:
            raise LocalProtocolError(f"context {self.number} has text that no audio.segment announced")
