"""A request for speech: its body and query as keys of our config.  What changes the speech is never dropped.

Source: elevenlabs-python, text_to_speech/raw_client.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from protocol.codes import ErrorCode, Refusal
from protocol.compat.body import read_object
from protocol.compat.elevenlabs.messages import read_speed
from protocol.compat.elevenlabs.options import REQUEST_FORMATS, config_changes
from protocol.text import shown

_MOST_SEED = 2**32 - 1
_QUERY = ("output_format", "enable_logging", "optimize_streaming_latency")
_REFUSED = {
    "pronunciation_dictionary_locators": "there are no pronunciation dictionaries here",
    "apply_language_text_normalization": "there is no such step",
    "audio_effects": "audio is what the voice makes",
}
_PASSED_OVER = (
    "model_id", "previous_text", "next_text", "previous_request_ids", "next_request_ids", "use_pvc_as_ivc",
)  # fmt: skip
_BODY = ("text", "language_code", "voice_settings", "seed", "apply_text_normalization", *_PASSED_OVER, *_REFUSED)


def read_call(body: bytes, query: Mapping[str, str]) -> tuple[str, dict[str, object]]:
    """(text, changes of the config).  Raises Refusal."""
    _check_known("parameter", query, _QUERY)
    fields = read_object(body)
    _check_known("field", fields, _BODY)
    for key, why in _REFUSED.items():
        if fields.get(key) not in (None, False, [], {}):
            raise Refusal(ErrorCode.BAD_VALUE, f"{key} is not supported: {why}; leave it out")
    text = fields.get("text")
    if not isinstance(text, str) or not text.strip():
        raise Refusal(ErrorCode.BAD_VALUE, f"text must be a string that is not empty; got {shown(text)}")
    changes = config_changes({**fields, "output_format": query.get("output_format")}, REQUEST_FORMATS)
    if (speed := read_speed(fields)) is not None:
        changes["speed"] = speed
    if (seed := fields.get("seed")) is not None:
        changes["seed"] = _seed(seed)
    return text, changes


def _seed(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_SEED:
        raise Refusal(ErrorCode.BAD_VALUE, f"seed must be an integer from 0 to {_MOST_SEED}; got {shown(value)}")
    return value


def _check_known(kind: str, given: Mapping[str, object], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            raise Refusal(ErrorCode.UNKNOWN_FIELD, f"unknown {kind} {shown(key)}; known {kind}s: {', '.join(known)}")
