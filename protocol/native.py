"""Our own protocol, see SPEC.md: JSON messages of the same names, and audio as binary messages."""

from __future__ import annotations

from dataclasses import asdict

import orjson

from protocol.codes import ErrorCode
from protocol.config import SessionConfig
from protocol.context import Context
from protocol.dialect import Dialect
from protocol.framing import AudioHeader
from protocol.limits import Limits
from protocol.messages import PROTOCOL_VERSION, ClientMessage, Hello, Metrics, Usage
from protocol.parsing import parse_message


class Native(Dialect):
    """Each thing that the session says is a message."""

    def hear(self, data: str) -> list[ClientMessage]:
        return [parse_message(data)]

    def ready(self, hello: Hello, config: SessionConfig, limits: Limits) -> None:
        self._say(
            "session.ready",
            protocol=PROTOCOL_VERSION,
            frame_rate=hello.sample_rate / hello.frame_samples,
            config=config.to_wire(),
            limits=asdict(limits),
            **asdict(hello),
        )

    def configured(self, config: SessionConfig) -> None:
        self._say("session.configured", config=config.to_wire())

    def pong(self, label: str | None) -> None:
        self._say("session.pong", **_given(id=label))

    def progress(self, context: Context, state: str, queue_position: int | None) -> None:
        self._say("session.progress", context_id=context.name, state=state, **_given(queue_position=queue_position))

    def error(self, code: ErrorCode, message: str, fatal: bool = False, **given: object) -> None:
        fields = dict(code=code, message=message, fatal=fatal, **_given(**given))
        self._say_text(_json("error", fields), error=code)

    def audio_start(self, context: Context) -> None:
        self._say(
            "audio.start",
            context_id=context.name,
            context_number=context.number,
            utterance_index=context.number,
            format=context.config.response_format,
            sample_rate=context.config.rate,
            channels=1,
        )

    def audio_segment(self, context: Context, spoken: str) -> None:
        segment = context.record.segments[-1]
        self._say(
            "audio.segment",
            context_id=context.name,
            segment_index=len(context.record.segments) - 1,
            text=segment.text,
            spoken=spoken,
            start_sample=segment.start,
        )

    def audio(self, context: Context, data: bytes, samples: int) -> None:
        if not data:
            return
        header = b""
        if context.config.framing == "header":
            header = AudioHeader(context.number, context.messages, samples, context.record.samples).pack()
        self._say_binary(header + data)

    def flushed(self, name: str | None, flush_id: str | None, end_sample: int) -> None:
        self._say("input.flushed", context_id=name, flush_id=flush_id, end_sample=end_sample)

    def audio_done(self, context: Context, error: ErrorCode | None) -> None:
        self._say(
            "audio.done",
            context_id=context.name,
            utterance_index=context.number,
            total_bytes=context.bytes,
            samples=context.record.samples,
            error=error,
        )

    def session_done(self, context: Context, reason: str, seed: int, usage: Usage, metrics: Metrics) -> None:
        self._say(
            "session.done",
            context_id=context.name,
            utterance_index=context.number,
            reason=reason,
            seed=seed,
            usage=asdict(usage),
            metrics=asdict(metrics),
        )

    def cancelled(self, context: Context, spoken: str, remaining: str) -> None:
        self._say(
            "input.cancelled",
            context_id=context.name,
            samples_sent=context.record.samples,
            text_spoken=spoken,
            text_remaining=remaining,
        )

    def _say(self, kind: str, **fields: object) -> None:
        self._say_text(_json(kind, fields))


def _json(kind: str, fields: dict[str, object]) -> bytes:
    return orjson.dumps({"type": kind} | fields)


def _given(**fields: object) -> dict[str, object]:
    return {key: value for key, value in fields.items() if value is not None}
