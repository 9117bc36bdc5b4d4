"""`--limit NAME=VALUE` on the command line: the limits that `session.ready` tells to clients."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields, replace

from protocol.limits import Limits

_MOST = 2**53 - 1  # a whole number that every JSON reader takes as it is
_LEAST_MESSAGE_BYTES = 4096  # so that clients can say a piece of text in any spelling of JSON


def limits_with(settings: Iterable[str]) -> Limits:
    """The defaults, but for these settings, `name=value`.  Raises ValueError that names what is allowed."""
    limits = Limits()
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or name not in _NAMES:
            raise ValueError(
                f"{setting!r} is no limit: it looks like NAME=VALUE, and NAME is one of {', '.join(_NAMES)}"
            )
        limits = replace(limits, **{name: _value(name, text)})
    if limits.config_message_bytes < limits.message_bytes:
        sizes = f"{limits.config_message_bytes}, message_bytes {limits.message_bytes}"
        raise ValueError(f"config_message_bytes must be at least message_bytes; it is {sizes}")
    return limits


def _value(name: str, text: str) -> int | float:
    """Of the kind that the limit has: whole, or seconds with a fraction."""
    least = _LEAST_MESSAGE_BYTES if name.endswith("message_bytes") else 1
    if isinstance(getattr(Limits(), name), int):
        if text.isdecimal() and least <= int(text) <= _MOST:
            return int(text)
        raise ValueError(f"{name} must be a whole number from {least} up, at most {_MOST}; got {text!r}")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if 0 < value < math.inf:
        return value
    raise ValueError(f"{name} must be seconds, a number above 0; got {text!r}")


_NAMES = tuple(field.name for field in fields(Limits))
