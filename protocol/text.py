"""JSON as it really arrives: what the fast parser refuses only for lone surrogates, and how such halves are joined."""

from __future__ import annotations

import json
import re

import orjson

from protocol.codes import ErrorCode, Refusal

MOST_DEPTH = 64
MOST_VALUES = 1000  # of a long message, about: millions of them would take seconds, and hundreds of MB

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)  # an unclosed one reaches to the end: linear time
_MOST_HALVED = 1 << 18  # characters of a message in which lone surrogates are mended: the way to them is slow
_MOST_SKELETON = 4096  # characters of such a message outside of its strings


def parse_json(data: str) -> object:
    """The value of one JSON text.  Strings may hold lone surrogates.  Raises Refusal(bad_json)."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if len(data) > _MOST_HALVED or not _SURROGATE_ESCAPE.search(data) or not _is_shallow(_STRING.sub("", data)):
            raise Refusal(ErrorCode.BAD_JSON, f"not JSON: {error}") from error
    try:
        return json.loads(data, parse_constant=_no_constant)
    except ValueError as error:
        raise Refusal(ErrorCode.BAD_JSON, f"not JSON: {error}") from error


def has_few_values(data: bytes) -> bool:
    """Whether a long message's length is in its strings.  Quick, whatever it holds: it may be no JSON at all."""
    return sum(map(data.count, (b"[", b"{", b","))) <= MOST_VALUES


def join_halves(held: str, text: str) -> tuple[str, str]:
    """Put the high surrogate `held` before `text`; returns (what is whole, the high surrogate that still waits or '').

    Halves that meet become one character; a half without its other becomes U+FFFD.
    """
    text = held + text
    waiting = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return mended(text[: len(text) - len(waiting)]), waiting


def mended(text: str) -> str:
    """`text` with surrogate pairs joined and each lone surrogate replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_whole(text: str) -> bool:
    """No lone surrogate in it: it can be sent as UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def shown(value: object, most: int = 60) -> str:
    """A value of the client for an error message: one line of ASCII, cut to `most` characters."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    text = ascii(value[:most] if isinstance(value, str) else value)
    return text if len(text) <= most else text[: most - 1] + "~"


def _is_shallow(skeleton: str) -> bool:
    """Whether what is left of a message without its strings is short, and nested no deeper than MOST_DEPTH."""
    if len(skeleton) > _MOST_SKELETON:
        return False
    depth = deepest = 0
    for character in skeleton:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest <= MOST_DEPTH


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")
