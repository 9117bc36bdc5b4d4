"""What is said of one utterance: units of audio, each in brackets, and its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from protocol.codes import ErrorCode
from protocol.compat.vllm_omni.options import Options
from protocol.wav import wav_header

Tell = Callable[..., None]


@dataclass(slots=True)
class Unit:
    """`sent` bytes of it, `held` until it is whole."""

    index: int
    sent: int = 0
    held: bytearray = field(default_factory=bytearray)


class Utterance:
    """`tell(type, told=None, **fields)` says a message, which tells the error `told`; `send`: binary data."""

    def __init__(self, index: int, options: Options, text: str, tell: Tell, send: Callable[[bytes], None]) -> None:
        self.options = options
        self._index, self._text, self._tell, self._send = index, text, tell, send
        self._units = 0
        self._unit: Unit | None = None
        self._rate = 0

    def begin(self, rate: int) -> None:
        """Its audio follows, `rate` samples a second."""
        self._rate = rate
        if not self.options.split:
            self._open(self._text)

    def segment(self, text: str) -> None:
        """The next audio speaks this part of it."""
        if self.options.split:
            self.close_unit()
            self._open(text)

    def audio(self, data: bytes) -> None:
        """Of the unit that is open."""
        if self.options.streamed and data:
            self._unit.sent += len(data)
            self._send(data)
        else:
            self._unit.held += data

    def close_unit(self) -> None:
        """It is whole, if one is open."""
        if self._unit is None:
            return
        if self._unit.held:
            head = wav_header(self._rate, len(self._unit.held)) if self.options.response_format == "wav" else b""
            whole = head + self._unit.held
            self._unit.sent = len(whole)
            self._send(whole)
        self._end_unit(failed=False)

    def end(self) -> None:
        """All of it was said."""
        self._tell("session.done", utterance_index=self._index, total_sentences=self._units)

    def fail(self, code: ErrorCode, message: str) -> None:
        """What is left is not said; a unit is told of in any case, so that brackets match."""
        if self._unit is None:
            self._open(self._text)
        where = f"utterance {self._index}, sentence {self._unit.index}"
        partial = {"partial_audio": True, "action": "discard"} if self._unit.sent else {}
        self._tell("error", told=code, code=code, message=f"Generation failed for {where}: {message}", **partial)
        self._end_unit(failed=True)
        self.end()

    def _open(self, text: str) -> None:
        self._unit = Unit(self._units)
        self._units += 1
        form = {"sample_rate": self._rate, "channels": 1} if self._rate else {}
        self._tell(
            "audio.start",
            utterance_index=self._index,
            sentence_index=self._unit.index,
            sentence_text=text,
            format=self.options.response_format,
            **form,
        )

    def _end_unit(self, failed: bool) -> None:
        self._tell(
            "audio.done",
            utterance_index=self._index,
            sentence_index=self._unit.index,
            total_bytes=self._unit.sent,
            error=failed,
        )
        self._unit = None
