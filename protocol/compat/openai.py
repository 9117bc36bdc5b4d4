"""OpenAI's `POST /v1/audio/speech`, with the further fields of vLLM-Omni: what a request asks for, and its answer.

Sources: openai-python, types/audio/speech_create_params.py; vLLM-Omni, docs/serving/speech_api.md.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from protocol.codes import ErrorCode, Refusal
from protocol.compat.answer import Answer
from protocol.compat.body import read_object
from protocol.compat.speech_fields import (
    COMMON_FIELDS,
    LONGEST_INPUT,
    bad_value,
    check_known,
    config_changes,
    flag,
    text_field,
)
from protocol.context import Context
from protocol.messages import Metrics, Usage

CONTENT_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/opus",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
DEFAULT_FORMAT, DEFAULT_RATE = "mp3", 24000  # clients of `pcm` take it for granted

_FIELDS = ("input", *COMMON_FIELDS, "stream", "stream_format")
_STREAM_FORMATS = ("audio", "sse")
_OPUS = "opus"  # has a rate of its own
_EVENT_BYTES = 24 * 1024  # of audio in one event: readers of lines take no more than 64 or 128 KiB of text
_CODES = {
    ErrorCode.NOT_FOUND: "model_not_found",
    ErrorCode.UNAUTHORIZED: "invalid_api_key",
    ErrorCode.RATE_LIMITED: "rate_limit_exceeded",
    ErrorCode.TOO_MANY_CONTEXTS: "rate_limit_exceeded",
}
_SERVER_ERRORS = (
    ErrorCode.OVERLOADED,
    ErrorCode.STAGE_TIMEOUT,
    ErrorCode.ENGINE_FAILED,
    ErrorCode.SHUTTING_DOWN,
    ErrorCode.INTERNAL,
)


@dataclass(frozen=True, slots=True)
class SpeechCall:
    """A request.  `changes`: keys of the config, unchecked; `events`: the answer is a stream of events."""

    text: str
    model: str | None
    changes: Mapping[str, object]
    response_format: str
    events: bool


def read_call(body: bytes) -> SpeechCall:
    """Raises Refusal."""
    fields = read_object(body)
    check_known(fields, _FIELDS)
    text = fields.get("input")
    if not isinstance(text, str) or not text.strip():
        raise bad_value("input", text, "the text to speak, a string that is not empty")
    if len(text) > LONGEST_INPUT:
        message = f"input must have at most {LONGEST_INPUT} characters; got {len(text)}"
        raise Refusal(ErrorCode.TEXT_TOO_LONG, message)
    response_format = fields.get("response_format") or DEFAULT_FORMAT
    if not isinstance(response_format, str) or response_format not in CONTENT_TYPES:
        raise bad_value("response_format", response_format, f"one of {', '.join(CONTENT_TYPES)}")
    changes = config_changes(fields) | {"response_format": response_format}
    if response_format != _OPUS:
        changes.setdefault("sample_rate", DEFAULT_RATE)
    return SpeechCall(text, text_field(fields, "model"), changes, response_format, _wants_events(fields))


def answer_of(call: SpeechCall) -> Answer:
    """The dialect in which a request is answered."""
    return EventAnswer() if call.events else Answer(CONTENT_TYPES[call.response_format])


class EventAnswer(Answer):
    """`stream_format: sse`: audio and how it ended as events; of a failure without audio a status tells."""

    def __init__(self) -> None:
        super().__init__("text/event-stream")
        self._has_begun = False

    @property
    def is_whole(self) -> bool:
        return True

    def audio(self, context: Context, data: bytes, samples: int) -> None:
        for start in range(0, len(data), _EVENT_BYTES):
            self._has_begun = True
            self._event("speech.audio.delta", audio=base64.b64encode(data[start : start + _EVENT_BYTES]).decode())

    def session_done(self, context: Context, reason: str, seed: int, usage: Usage, metrics: Metrics) -> None:
        super().session_done(context, reason, seed, usage, metrics)
        if self._has_begun:
            counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.audio_frames}
            self._event("speech.audio.done", usage=counts | {"total_tokens": sum(counts.values())})

    def error(self, code: ErrorCode, message: str, fatal: bool = False, **given: object) -> None:
        if self._has_begun and not self.is_over:
            self._event("speech.audio.error", **error_body(code, message))
        super().error(code, message, fatal, **given)

    def _event(self, kind: str, **fields: object) -> None:
        self._say_binary(b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps({"type": kind} | fields)))


def error_body(code: ErrorCode, message: str) -> dict[str, object]:
    """An error as OpenAI's clients read it.  `param`: the field that it is about, with which the message begins."""
    first = message.partition(" ")[0]
    error = {
        "message": message,
        "type": "server_error" if code in _SERVER_ERRORS else "invalid_request_error",
        "param": first if first in _FIELDS else None,
        "code": _CODES.get(code, code),
    }
    return {"error": error}


def _wants_events(fields: Mapping[str, object]) -> bool:
    """`stream` alone means events too, as vLLM-Omni has it."""
    chosen = fields.get("stream_format")
    if chosen is not None and chosen not in _STREAM_FORMATS:
        raise bad_value("stream_format", chosen, f"one of {', '.join(_STREAM_FORMATS)}")
    return chosen == "sse" or (chosen is None and flag(fields, "stream"))
