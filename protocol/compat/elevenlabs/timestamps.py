"""Answers that tell when each character is spoken: as `alignment.py` estimates it, counted from the first sample."""

from __future__ import annotations

import base64

import orjson

from protocol.compat.answer import Answer
from protocol.compat.elevenlabs.alignment import Alignment, Told
from protocol.context import Context
from protocol.messages import Metrics, Usage

_NAMES = ("characters", "character_start_times_seconds", "character_end_times_seconds")


class TimedStream(Answer):
    """`stream/with-timestamps`: one JSON object a line, as audio is made.  `rate`: samples a second."""

    def __init__(self, rate: int) -> None:
        super().__init__("application/json")
        self._rate = rate
        self._alignment = Alignment(rate)
        self._samples = 0  # of earlier messages

    def audio_segment(self, context: Context, spoken: str) -> None:
        self._alignment.begin(context.record.segments[-1].text, spoken)

    def audio(self, context: Context, data: bytes, samples: int) -> None:
        if samples:
            self._alignment.advance(samples, context.record.segments[-1].total)
        self._tell(data, *self._alignment.take())
        self._samples += samples

    def session_done(self, context: Context, reason: str, seed: int, usage: Usage, metrics: Metrics) -> None:
        self._tell(b"", *self._alignment.rest())
        super().session_done(context, reason, seed, usage, metrics)

    def _tell(self, data: bytes, received: Told | None, spoken: Told | None) -> None:
        if data or received or spoken:
            self._say_binary(_line(data, self._timed(received), self._timed(spoken)))

    def _timed(self, told: Told | None) -> dict[str, list] | None:
        """In seconds from the beginning."""
        if told is None:
            return None
        before = self._samples / self._rate
        starts = [before + ms / 1000 for ms in told["charStartTimesMs"]]
        ends = [start + ms / 1000 for start, ms in zip(starts, told["charDurationsMs"], strict=True)]
        times = ([round(time, 3) for time in each] for each in (starts, ends))
        return dict(zip(_NAMES, (told["chars"], *times), strict=True))


class TimedAnswer(TimedStream):
    """`with-timestamps`: all of it as one JSON object, at the end; of any failure a status tells."""

    def __init__(self, rate: int) -> None:
        super().__init__(rate)
        self._audio = bytearray()
        self._parts: tuple[list[dict], list[dict]] = ([], [])

    def session_done(self, context: Context, reason: str, seed: int, usage: Usage, metrics: Metrics) -> None:
        super().session_done(context, reason, seed, usage, metrics)
        if self._audio:
            self._say_binary(_line(bytes(self._audio), *map(_joined, self._parts)))

    def _tell(self, data: bytes, received: Told | None, spoken: Told | None) -> None:
        self._audio += data
        for parts, told in zip(self._parts, (received, spoken), strict=True):
            if told is not None:
                parts.append(self._timed(told))


def _line(data: bytes, alignment: dict | None, normalized: dict | None) -> bytes:
    audio = base64.b64encode(data).decode()
    return orjson.dumps({"audio_base64": audio, "alignment": alignment, "normalized_alignment": normalized}) + b"\n"


def _joined(parts: list[dict]) -> dict | None:
    return {name: [each for part in parts for each in part[name]] for name in _NAMES} if parts else None
