"""One context as its client sees it: what is still to be sent, what came, and what of it a listener has heard."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import Enum, auto

from protocol.client_errors import ContextEnded, ProtocolViolation, SpeechError
from protocol.client_values import AudioChunk, CancelResult, ContextResult, Heard, Segment
from protocol.codes import ErrorCode
from protocol.config import BYTES_PER_SAMPLE, ENCODED_FORMATS, FORMATS
from protocol.framing import HEADER_BYTES, AudioHeader
from protocol.record import SpokenRecord
from protocol.text import join_halves, mended


class State(Enum):
    """Where a context stands, by what its client said and the server's terminal message."""

    OPEN = auto()
    DRAINING = auto()
    CANCELLING = auto()
    ENDED = auto()


class ClientContext:
    """`queue`: texts, flush labels and the end, in order, that wait for room on the wire.

    `sent` keeps what was said until the first audio comes: so long the context can be said again elsewhere.
    """

    def __init__(self, name: str, opening: Mapping[str, object]) -> None:
        self.name, self.opening = name, dict(opening)
        self.state = State.OPEN
        self.queue: deque[tuple[str, str]] = deque()  # ("input.text", text), ("input.flush", label), ("input.done", "")
        self.sent: list[tuple[str, str]] = []
        self.known = False  # the server has heard, or is about to hear, of it
        self.attempts = 0  # connections that were lost while the server knew of it
        self.unannounced = 0  # characters that were sent and are in no segment yet
        self.flushes: deque[str] = deque()  # labels that were sent and are not answered yet
        self.flushed: dict[str, int] = {}  # label -> end_sample
        self.record = SpokenRecord(rate=1)  # `start` tells the rate
        self.format = ""
        self.number: int | None = None
        self.chunks: deque[AudioChunk] = deque()  # came, not taken yet
        self.result: ContextResult | None = None
        self.cancelled: CancelResult | None = None
        self.error: SpeechError | None = None
        self._half = ""
        self._labels = self._sequence = 0
        self._offset_ms: float | None = None

    @property
    def ended(self) -> bool:
        """Nothing of it will come any more."""
        return self.state is State.ENDED

    @property
    def spoke(self) -> bool:
        """Audio of it came."""
        return self._sequence > 0

    @property
    def encoded(self) -> bool:
        """Its messages have no header, and how many samples came is known at the borders of segments only."""
        return self.format in ENCODED_FORMATS

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Those that were announced so far, in order."""
        return tuple(Segment(segment.text, segment.start) for segment in self.record.segments)

    def heard(self, offset_ms: float | None = None) -> Heard:
        """What a listener who has heard `offset_ms` of its audio knows; None: all that came.

        A segment of encoded audio whose end is not known counts as not heard.
        """
        return Heard(*self.record.split(offset_ms))

    # Input ----------------------------------------------------------------------------------------------------------

    def push(self, text: str) -> None:
        """Append text.  Raises ContextEnded."""
        self._check_open()
        whole, self._half = join_halves(self._half, text)
        self._append(whole)

    def flush(self) -> str:
        """Speak what is buffered -> the label under which `flushed` will have the answer.  Raises ContextEnded."""
        self._check_open()
        self._complete()
        self._labels += 1
        self.queue.append(("input.flush", str(self._labels)))
        return str(self._labels)

    def done(self) -> None:
        """No more text.  A second call changes nothing.  Raises ContextEnded after a cancel or failure."""
        if self.state is State.DRAINING or self.result is not None:
            return
        self._check_open()
        self._complete()
        self.state = State.DRAINING
        self.queue.append(("input.done", ""))

    def cancel(self, offset_ms: float | None) -> bool:
        """Drop all that waits -> whether the server must be told; otherwise it has ended, or is being cancelled."""
        if self.state in (State.CANCELLING, State.ENDED):
            if self.ended and self.cancelled is None:
                self.chunks.clear()
                self.cancelled = self._own_account(offset_ms)
            return False
        self._complete()
        self.queue.clear()
        self.chunks.clear()
        self._offset_ms = offset_ms
        self.state = State.CANCELLING
        if not self.known:
            self.end()
        return self.known

    def _check_open(self) -> None:
        if self.error is not None:
            raise self.error
        if self.state is not State.OPEN:
            raise ContextEnded(ErrorCode.CONTEXT_ENDED, f"context {self.name} takes no more input")

    def _complete(self) -> None:
        whole, self._half = mended(self._half), ""
        self._append(whole)

    def _append(self, text: str) -> None:
        if text:
            self.record.receive(text)
            self.queue.append(("input.text", text))

    # Output ---------------------------------------------------------------------------------------------------------

    def start(self, number: int, audio_format: str, rate: int) -> None:
        """Audio follows, in this format."""
        if audio_format not in FORMATS:
            raise self._violation(f"its audio is {audio_format!r}, which was not asked for")
        self.number, self.format, self.record.rate = number, audio_format, rate

    def segment(self, text: str, start: int) -> None:
        """The next audio speaks `text`."""
        self.check_position("a segment", start)
        if not self.record.pending.startswith(text):
            raise self._violation("a segment's text is not what was sent")
        self.record.begin(text)
        self.unannounced -= len(text)

    def audio(self, header: AudioHeader, message: bytes) -> None:
        """One binary message, header and samples."""
        self.check_position(f"audio message {header.sequence}", header.start)
        if header.sequence != self._sequence or not self.record.segments:
            raise self._violation(f"audio message {header.sequence} came where {self._sequence} was due")
        size = header.samples * BYTES_PER_SAMPLE[self.format]
        if not header.samples or len(message) - HEADER_BYTES != size:
            raise self._violation(
                f"audio message {header.sequence} has {len(message) - HEADER_BYTES} bytes, not {size}"
            )
        self._take(message[HEADER_BYTES:], header.start, header.samples)
        self.record.add(header.samples, None)

    def encoded_audio(self, message: bytes) -> None:
        """One binary message of an encoded format."""
        if not self.record.segments:
            raise self._violation("audio came before a segment")
        self._take(message, self.record.segments[-1].start, None)

    def _take(self, data: bytes, start: int, samples: int | None) -> None:
        self._sequence += 1
        self.sent.clear()
        if self.state is not State.CANCELLING:
            self.chunks.append(AudioChunk(data, start, samples, self.format, self.record.rate))

    def answer_flush(self, label: str, end: int) -> None:
        """The oldest unanswered flush is done."""
        if not self.flushes or self.flushes[0] != label:
            raise self._violation(f"flush {label!r} was answered out of turn")
        self.check_position("a flush", end)
        self.record.close()
        self.flushed[self.flushes.popleft()] = end

    def check_position(self, what: str, samples: int) -> None:
        """Raises ProtocolViolation unless exactly so many samples came; of encoded audio this tells how many."""
        if self.encoded and self.record.segments and samples > self.record.samples:
            self.record.add(samples - self.record.samples, None)
        if samples != self.record.samples:
            raise self._violation(f"{what} is at sample {samples}, but {self.record.samples} came")

    def finish(self, message: Mapping[str, object]) -> None:
        """`session.done` came."""
        self.record.close()
        seed, usage, metrics = message["seed"], message["usage"], message["metrics"]
        self.result = ContextResult(message["reason"], seed, usage, metrics, self.record.samples)
        self.end()

    def fence(self, spoken: str, remaining: str, samples: int) -> None:
        """`input.cancelled` came; what had not been sent by then counts as remaining, too."""
        self.check_position("the fence", samples)
        known = len(spoken) + len(remaining)
        everything = "".join(self.heard())
        if everything[:known] != spoken + remaining:
            raise self._violation("the texts of a cancel are not what was sent")
        self.cancelled = CancelResult(spoken, remaining + everything[known:], samples)
        self.end()

    def end(self, error: SpeechError | None = None) -> None:
        """Its terminal message came, or none can come.  A cancel that got no answer is answered from the record."""
        if self.state is State.CANCELLING:
            self.cancelled = self.cancelled or self._own_account(self._offset_ms)
        elif self.error is None:
            self.error = error
        self._complete()
        self.state = State.ENDED
        self.queue.clear()
        self.sent.clear()

    def rewind(self) -> None:
        """The connection is gone, and nothing was spoken: everything waits to be said once more."""
        self.attempts += self.known
        self.queue.extendleft(reversed(self.sent))
        self.sent.clear()
        self.flushes.clear()
        self.known, self.number, self.unannounced, self._sequence = False, None, 0, 0
        record = SpokenRecord(rate=1)
        record.receive("".join(self.heard()))
        self.record = record

    def _own_account(self, offset_ms: float | None) -> CancelResult:
        return CancelResult(*self.heard(offset_ms), self.record.samples)

    def _violation(self, message: str) -> ProtocolViolation:
        return ProtocolViolation(ErrorCode.PROTOCOL_ERROR, f"context {self.name}: {message}")
