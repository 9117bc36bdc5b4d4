"""`ref_audio` and `ref_text`: a voice that a session brings along, as far as it can be read without decoding sound."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from protocol.codes import ErrorCode, Refusal
from protocol.text import is_whole, shown

AUDIO_KEY, TEXT_KEY = "ref_audio", "ref_text"
MOST_TEXT = 1000

_HEAD = re.compile(r"data:[\w.+/-]*(?:;[\w.+=-]+)*;base64")
_LONGEST_HEAD = 200


@dataclass(frozen=True, slots=True)
class GivenReference:
    """An audio file and what is said in it.  `digest` stands for the file wherever the config is told."""

    digest: str
    text: str
    audio: bytes = field(repr=False)


def read_reference(changes: Mapping[str, object]) -> GivenReference | None:
    """The reference among the changes of a config, None if they give none.  Raises Refusal(bad_value)."""
    audio, text = changes.get(AUDIO_KEY), changes.get(TEXT_KEY)
    if audio is None and text is None:
        return None
    if audio is None or text is None:
        given, missing = (TEXT_KEY, AUDIO_KEY) if audio is None else (AUDIO_KEY, TEXT_KEY)
        raise Refusal(ErrorCode.BAD_VALUE, f"{given} needs {missing} in the same message")
    if not isinstance(text, str) or not text.strip() or len(text) > MOST_TEXT or not is_whole(text):
        allowed = f"what is said in {AUDIO_KEY}, a string of 1 to {MOST_TEXT} characters"
        raise Refusal(ErrorCode.BAD_VALUE, f"{TEXT_KEY} must be {allowed}; got {shown(text)}")
    data = _decoded(audio)
    return GivenReference("sha256:" + hashlib.sha256(data).hexdigest(), text, data)


def _decoded(url: object) -> bytes:
    """The bytes of a data URL."""
    if isinstance(url, str):
        head, comma, body = url.partition(",")
        if comma and len(head) <= _LONGEST_HEAD and _HEAD.fullmatch(head):
            try:
                return base64.b64decode(body, validate=True)
            except ValueError:
                raise Refusal(ErrorCode.BAD_VALUE, f"{AUDIO_KEY} is not valid base64") from None
    allowed = "a data URL of an audio file, data:audio/…;base64,…"
    raise Refusal(ErrorCode.BAD_VALUE, f"{AUDIO_KEY} must be {allowed}; got {shown(url)}")
