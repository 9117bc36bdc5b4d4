"""`session.config`, with vLLM-Omni's defaults (its protocol/audio.py, StreamingSpeechSessionConfig)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protocol.compat.speech_fields import (
    COMMON_FIELDS,
    bad_value,
    check_known,
    check_model,
    config_changes,
    flag,
    text_field,
)

FORMATS = ("wav", "pcm", "flac", "mp3", "opus", "aac")
GRANULARITIES = ("none", "sentence", "clause")
_RATE = 24000  # its clients take it for granted where they are told nothing
_SAMPLES = ("wav", "pcm")  # can be cut anywhere: the session makes `pcm` for both
_FIELDS = (*COMMON_FIELDS, "split_granularity", "stream_audio")


@dataclass(frozen=True, slots=True)
class Options:
    """What an utterance is spoken with.  `changes`: keys of our config.

    `response_format`: of what is sent.  `streamed`: audio leaves as it is made, not as one message for a unit.
    `split`: a unit is what the session makes a segment of, and not all text of an utterance.
    """

    changes: Mapping[str, object]
    response_format: str
    streamed: bool
    split: bool


def read_options(fields: Mapping[str, object], served_model: str) -> Options:
    """Raises Refusal.  Values of `changes` are for the config's rules to check."""
    check_known(fields, _FIELDS)
    check_model(text_field(fields, "model"), served_model)
    response_format = _one_of(fields, "response_format", FORMATS)
    granularity = _one_of(fields, "split_granularity", GRANULARITIES)
    streamed = flag(fields, "stream_audio")
    if streamed and response_format != "pcm":
        raise bad_value("response_format", response_format, "pcm with stream_audio")
    split = granularity != "none"
    if split and response_format not in _SAMPLES:
        raise bad_value("response_format", response_format, f"wav or pcm with split_granularity {granularity}")
    changes = config_changes(fields)
    changes["response_format"] = "pcm" if response_format in _SAMPLES else response_format
    if response_format != "opus":
        changes.setdefault("sample_rate", _RATE)
    if split:
        changes["split_granularity"] = granularity
    return Options(changes, response_format, streamed, split)


def _one_of(fields: Mapping[str, object], key: str, allowed: tuple[str, ...]) -> str:
    """The value of a field, or the first of those that are allowed."""
    value = fields.get(key)
    if value is None:
        return allowed[0]
    if not isinstance(value, str) or value not in allowed:
        raise bad_value(key, value, f"one of {', '.join(allowed)}")
    return value
