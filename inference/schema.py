"""A reader of nested settings: each key is asked for by name and type, and what nobody asked for is refused."""

from __future__ import annotations

import difflib
import math
from typing import Any, TypeVar

from inference.strict_yaml import child

_Scalar = TypeVar("_Scalar", bool, int, float, str)


class _Required:
    """Stands for 'no default': the key must be there."""


REQUIRED = _Required()


class SchemaError(ValueError):
    """A key is missing, unknown, or has a value that is not supported.  `path` names it, `reason` says why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path, self.reason = path, reason


class Section:
    """One mapping of the tree at `path`.  Read its keys with the methods below, then call `finish`."""

    def __init__(self, value: Any, path: str = "") -> None:
        if not isinstance(value, dict):
            raise SchemaError(path, f"must be a mapping, got {_shown(value)}")
        self.path = path
        self._left: dict[str, Any] = dict(value)
        self._read: list[str] = []

    def refuse(self, key: str, reason: str) -> SchemaError:
        """The error, to be raised, that says why the value of `key` is not taken."""
        return SchemaError(child(self.path, key), reason)

    def integer(self, key: str, low: int, high: int | None = None, default: int | _Required = REQUIRED) -> int:
        """A whole number in [low, high]."""
        value = self._take(key, default)
        span = f"of at least {low}" if high is None else f"from {low} to {high}"
        if type(value) is not int or value < low or (high is not None and value > high):
            raise self.refuse(key, f"must be a whole number {span}, got {_shown(value)}")
        return value

    def number(self, key: str, above: float, most: float = math.inf, default: float | _Required = REQUIRED) -> float:
        """A finite number x with above < x <= most."""
        value = self._take(key, default)
        span = f"above {above:g}" + ("" if most == math.inf else f" and at most {most:g}")
        if type(value) not in (int, float) or not math.isfinite(value) or not above < value <= most:
            raise self.refuse(key, f"must be a number {span}, got {_shown(value)}")
        return float(value)

    def flag(self, key: str, default: bool | _Required = REQUIRED) -> bool:
        """true or false."""
        value = self._take(key, default)
        if type(value) is not bool:
            raise self.refuse(key, f"must be true or false, got {_shown(value)}")
        return value

    def text(self, key: str) -> str:
        """A string that is not empty."""
        value = self._take(key, REQUIRED)
        if type(value) is not str or not value:
            raise self.refuse(key, f"must be a string, got {_shown(value)}")
        return value

    def choice(self, key: str, allowed: tuple[str, ...], default: str | _Required = REQUIRED) -> str:
        """One of the strings in `allowed`."""
        value = self._take(key, default)
        if value not in allowed:
            raise self.refuse(key, f"must be {' or '.join(allowed)}, got {_shown(value)}")
        return value

    def only(self, key: str, supported: _Scalar, reason: str) -> None:
        """A key of which one value alone is supported; `reason` says why the others are not.

        A whole number may stand for a float (0 for 0.0), nothing else for another type.
        """
        value = self._take(key, REQUIRED)
        kinds = (int, float) if type(supported) is float else (type(supported),)
        if type(value) not in kinds or value != supported:
            raise self.refuse(key, f"must be {_shown(supported)}, got {_shown(value)}: {reason}")

    def section(self, key: str) -> Section:
        """The mapping under `key`."""
        return Section(self._take(key, REQUIRED), child(self.path, key))

    def sections(self, key: str) -> list[Section]:
        """The list of mappings under `key`."""
        value, path = self._take(key, REQUIRED), child(self.path, key)
        if not isinstance(value, list):
            raise SchemaError(path, f"must be a list, got {_shown(value)}")
        return [Section(item, child(path, index)) for index, item in enumerate(value)]

    def keys(self) -> list[str]:
        """The keys not read yet, in the file's order."""
        return list(self._left)

    def finish(self) -> None:
        """Refuse the keys that nobody has read."""
        for key in self._left:
            close = difflib.get_close_matches(key, self._read, n=1)
            hint = f" (did you mean {close[0]}?)" if close else f"; known here: {', '.join(self._read)}"
            raise self.refuse(key, f"unknown key{hint}")

    def _take(self, key: str, default: Any) -> Any:
        self._read.append(key)
        if key in self._left:
            return self._left.pop(key)
        if default is REQUIRED:
            raise self.refuse(key, "is missing")
        return default


def _shown(value: Any) -> str:
    """A value as YAML writes it, so that the message reads like the file."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f'"{value}"' if isinstance(value, str) else str(value)
