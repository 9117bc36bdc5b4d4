"""What a request asks for in its query: the format of the audio, and how the text is taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protocol.codes import ErrorCode, Refusal
from protocol.config import SAMPLE_RATES
from protocol.text import shown

DEFAULT_FORMAT = "mp3_44100_128"
DEFAULT_INACTIVITY_S = 20.0
MOST_INACTIVITY_S = 180.0

_MP3 = ("22050_32", "24000_48", "44100", "44100_32", "44100_64", "44100_96", "44100_128", "44100_192")
_OPUS = ("48000_32", "48000_64", "48000_96", "48000_128", "48000_192")
OUTPUT_FORMATS: dict[str, tuple[str, int]] = {
    **{f"pcm_{rate}": ("pcm", rate) for rate in SAMPLE_RATES},
    **{f"mp3_{name}": ("mp3", int(name.partition("_")[0])) for name in _MP3},
    **{f"opus_{name}": ("opus", 48000) for name in _OPUS},
    "ulaw_8000": ("mulaw", 8000),
    "alaw_8000": ("alaw", 8000),
}
"""Their name of a format -> (`response_format`, `sample_rate`) of the session's config.  Bit rates are ours."""

REQUEST_FORMATS = OUTPUT_FORMATS | {f"wav_{rate}": ("wav", rate) for rate in SAMPLE_RATES}
"""Those of a request."""

_NORMALIZATIONS = {"auto": "full", "on": "full", "off": "markup"}
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """`changes`: of the session's config.  `auto_mode`: each message is a whole sentence or phrase.  `inactivity_s`:
    how long a client may say nothing."""

    changes: Mapping[str, object]
    auto_mode: bool
    inactivity_s: float


def read_options(query: Mapping[str, str]) -> StreamOptions:
    """Of either socket.  Keys that only make sense at ElevenLabs are passed over.  Raises Refusal."""
    if _flag(query, "enable_ssml_parsing"):
        message = "enable_ssml_parsing is not supported: tags are no text to be spoken; send plain text"
        raise Refusal(ErrorCode.BAD_VALUE, message)
    return StreamOptions(config_changes(query), _flag(query, "auto_mode"), _inactivity(query))


def config_changes(
    options: Mapping[str, object], formats: Mapping[str, tuple[str, int]] = OUTPUT_FORMATS
) -> dict[str, object]:
    """Of the session's config, by `output_format`, `language_code` and `apply_text_normalization`.  Raises Refusal."""
    response_format, rate = output_format(options.get("output_format") or DEFAULT_FORMAT, formats)
    changes: dict[str, object] = {"response_format": response_format, "sample_rate": rate}
    if options.get("language_code"):
        changes["language"] = options["language_code"]
    normalization = options.get("apply_text_normalization") or "auto"
    if not isinstance(normalization, str) or normalization not in _NORMALIZATIONS:
        raise _bad("apply_text_normalization", ", ".join(_NORMALIZATIONS), normalization)
    changes["text_preparation"] = _NORMALIZATIONS[normalization]
    return changes


def output_format(name: object, formats: Mapping[str, tuple[str, int]]) -> tuple[str, int]:
    """(`response_format`, `sample_rate`).  Raises Refusal."""
    if not isinstance(name, str) or name not in formats:
        raise _bad("output_format", f"one of {', '.join(formats)}", name)
    return formats[name]


def _flag(query: Mapping[str, str], key: str) -> bool:
    value = query.get(key, "false")
    if value.lower() not in _FLAGS:
        raise _bad(key, "true or false", value)
    return _FLAGS[value.lower()]


def _inactivity(query: Mapping[str, str]) -> float:
    value = query.get("inactivity_timeout", str(DEFAULT_INACTIVITY_S))
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MOST_INACTIVITY_S:  # nan is refused too
        raise _bad("inactivity_timeout", f"a number of seconds above 0, at most {MOST_INACTIVITY_S:g}", value)
    return seconds


def _bad(key: str, allowed: str, value: object) -> Refusal:
    return Refusal(ErrorCode.BAD_VALUE, f"{key} must be {allowed}; got {shown(value)}")
