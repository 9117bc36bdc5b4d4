"""What a client says: one kind of message, whose fields tell what is meant.

Fields that only make sense at ElevenLabs are passed over: `generation_config`, `try_trigger_generation`, and of
`voice_settings` all but `speed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protocol.codes import CloseCode, ErrorCode, FatalRefusal, Refusal
from protocol.text import is_whole, parse_json, shown

LEAST_SPEED, MOST_SPEED = 0.7, 1.2
MOST_ID = 256

_KEYS = ("xi-api-key", "xi_api_key", "authorization")

Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Said:
    """`text` None: there was none.  `speed` None: nothing was said of it."""

    text: str | None
    context_id: str | None
    flush: bool
    close_context: bool
    close_socket: bool
    speed: float | None


def read_message(data: str) -> Said:
    """Raises FatalRefusal: their errors end the connection."""
    try:
        fields = _fields(data)
        _no_dictionaries(fields)
        return Said(
            text=_string(fields, "text"),
            context_id=_context_id(fields),
            flush=_flag(fields, "flush"),
            close_context=_flag(fields, "close_context"),
            close_socket=_flag(fields, "close_socket"),
            speed=read_speed(fields),
        )
    except Refusal as refusal:
        raise FatalRefusal(refusal.code, CloseCode.POLICY, refusal.message) from refusal


def read_key(data: str) -> str | None:
    """The API key that a first message brings, None if it brings none."""
    try:
        fields = _fields(data)
    except Refusal:
        return None
    value = next((fields[key] for key in _KEYS if isinstance(fields.get(key), str)), None)
    if value is None:
        return None
    scheme, _, key = value.strip().partition(" ")
    return key.strip() if scheme.lower() == "bearer" else value.strip()


def read_speed(fields: Fields) -> float | None:
    """`speed` of `voice_settings`.  Raises Refusal."""
    settings = fields.get("voice_settings")
    if settings is None:
        return None
    if not isinstance(settings, dict):
        raise _bad("voice_settings", "an object", settings)
    speed = settings.get("speed")
    if speed is None:
        return None
    if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not LEAST_SPEED <= speed <= MOST_SPEED:
        raise _bad("voice_settings.speed", f"a number from {LEAST_SPEED:g} to {MOST_SPEED:g}", speed)
    return float(speed)


def _fields(data: str) -> Fields:
    value = parse_json(data)
    if not isinstance(value, dict):
        raise Refusal(ErrorCode.BAD_MESSAGE, f"a message is a JSON object; got {shown(value)}")
    return value


def _no_dictionaries(fields: Fields) -> None:
    if fields.get("pronunciation_dictionary_locators"):
        message = "pronunciation_dictionary_locators: there are no pronunciation dictionaries here; send none"
        raise Refusal(ErrorCode.BAD_VALUE, message)


def _context_id(fields: Fields) -> str | None:
    value = _string(fields, "context_id") or _string(fields, "contextId")
    if value is not None and (len(value) > MOST_ID or not is_whole(value)):
        raise _bad("context_id", f"a string of at most {MOST_ID} characters", value)
    return value or None


def _string(fields: Fields, key: str) -> str | None:
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise _bad(key, "a string", value)
    return value


def _flag(fields: Fields, key: str) -> bool:
    value = fields.get(key)
    if value is not None and not isinstance(value, bool):
        raise _bad(key, "true or false", value)
    return bool(value)


def _bad(key: str, allowed: str, value: object) -> Refusal:
    return Refusal(ErrorCode.BAD_VALUE, f"{key} must be {allowed}; got {shown(value)}")
