"""From the bytes of a client's message to a frozen dataclass; everything that is wrong is named in a Refusal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from protocol.codes import ErrorCode, Refusal
from protocol.config import MEANINGFUL_NULL
from protocol.messages import Cancel, ClientMessage, Close, Config, Done, Flush, MessageType, Ping, Text
from protocol.text import is_whole, parse_json, shown

MOST_ID = 64
MOST_OFFSET_MS = 10**9
CONTEXT_ID = re.compile(r"[A-Za-z0-9.:-][A-Za-z0-9._:-]{0,63}")
OVERRIDES = ("voice", "seed", "language")

Fields = Mapping[str, object]


def parse_message(data: str) -> ClientMessage:
    """Read one text message.  Raises Refusal (bad_json, bad_message, unknown_type, unknown_field, bad_value)."""
    value = parse_json(data)
    if not isinstance(value, dict):
        raise Refusal(ErrorCode.BAD_MESSAGE, f"a message is a JSON object with a type; got {shown(value)}")
    kind = value.pop("type", None)
    if not isinstance(kind, str):
        raise Refusal(ErrorCode.BAD_MESSAGE, f"type must be a string; got {shown(kind)}")
    if kind not in _PARSERS:
        raise Refusal(ErrorCode.UNKNOWN_TYPE, f"unknown type {shown(kind)}; known types: {', '.join(_PARSERS)}")
    try:
        return _PARSERS[kind](value)
    except Refusal as refusal:
        refusal.context_id = _valid_id(value.get("context_id"))
        raise


def _config(fields: Fields) -> Config:
    return Config(fields)


def _text(fields: Fields) -> Text:
    _only(fields, MessageType.TEXT, "text", "context_id", *OVERRIDES)
    if "text" not in fields:
        raise Refusal(ErrorCode.BAD_MESSAGE, "input.text needs text, a string")
    text = fields["text"]
    if not isinstance(text, str):
        raise _bad("text", "a string", text)
    return Text(text, _context_id(fields), {key: fields[key] for key in OVERRIDES if _is_given(fields, key)})


def _flush(fields: Fields) -> Flush:
    _only(fields, MessageType.FLUSH, "context_id", "flush_id")
    return Flush(_context_id(fields), _label(fields, "flush_id"))


def _done(fields: Fields) -> Done:
    _only(fields, MessageType.DONE, "context_id")
    return Done(_context_id(fields))


def _cancel(fields: Fields) -> Cancel:
    _only(fields, MessageType.CANCEL, "context_id", "playback_offset_ms")
    context_id, offset = _context_id(fields), fields.get("playback_offset_ms")
    if offset is None:
        return Cancel(context_id)
    if isinstance(offset, bool) or not isinstance(offset, (int, float)) or not 0 <= offset <= MOST_OFFSET_MS:
        raise _bad("playback_offset_ms", f"a number of milliseconds from 0 to {MOST_OFFSET_MS}", offset)
    if context_id is None:
        raise Refusal(ErrorCode.BAD_MESSAGE, "playback_offset_ms needs a context_id")
    return Cancel(context_id, offset)


def _ping(fields: Fields) -> Ping:
    _only(fields, MessageType.PING, "id", "context_id")
    return Ping(_label(fields, "id"), _context_id(fields))


def _close(fields: Fields) -> Close:
    _only(fields, MessageType.CLOSE)
    return Close()


_PARSERS: dict[str, Callable[[Fields], ClientMessage]] = {
    MessageType.CONFIG: _config,
    MessageType.TEXT: _text,
    MessageType.FLUSH: _flush,
    MessageType.DONE: _done,
    MessageType.CANCEL: _cancel,
    MessageType.PING: _ping,
    MessageType.CLOSE: _close,
}


def _only(fields: Fields, kind: str, *allowed: str) -> None:
    for key in fields:
        if key not in allowed:
            known = f"its fields: {', '.join(allowed)}" if allowed else "it has no fields"
            raise Refusal(ErrorCode.UNKNOWN_FIELD, f"{kind} has no field {shown(key)}; {known}")


def _is_given(fields: Fields, key: str) -> bool:
    """Whether it says something: null does where it has a meaning of its own."""
    return key in fields and (fields[key] is not None or key in MEANINGFUL_NULL)


def _context_id(fields: Fields) -> str | None:
    value = fields.get("context_id")
    if value is None or _valid_id(value):
        return value  # type: ignore[return-value]
    raise _bad("context_id", f"a string that matches {CONTEXT_ID.pattern}", value)


def _valid_id(value: object) -> str | None:
    return value if isinstance(value, str) and CONTEXT_ID.fullmatch(value) else None


def _label(fields: Fields, key: str) -> str | None:
    """A string of the client's own that comes back to it."""
    value = fields.get(key)
    if value is None or (isinstance(value, str) and len(value) <= MOST_ID and is_whole(value)):
        return value
    raise _bad(key, f"a string of at most {MOST_ID} characters", value)


def _bad(key: str, allowed: str, value: object) -> Refusal:
    return Refusal(ErrorCode.BAD_VALUE, f"{key} must be {allowed}; got {shown(value)}")
