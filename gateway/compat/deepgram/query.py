"""What the query of a Deepgram request asks for."""

from __future__ import annotations

from collections.abc import Mapping

from protocol.codes import ErrorCode, Refusal
from protocol.config import ConfigRules, SessionConfig
from protocol.text import shown

ENCODINGS = {"linear16": "pcm", "mulaw": "mulaw", "alaw": "alaw"}
RATES = {"linear16": 24000, "mulaw": 8000, "alaw": 8000}  # unless the query says otherwise

_OF_NO_CONSEQUENCE = ("mip_opt_out", "tag", "token")  # nothing is kept of a request; the key is read elsewhere
_KNOWN = ("model", "encoding", "sample_rate", "speed", "container", *_OF_NO_CONSEQUENCE)


class DeepgramQuery:
    """`more`: names of parameters that are known besides.  Everything raises Refusal for what it cannot take."""

    def __init__(self, query: Mapping[str, str], *more: str) -> None:
        self._query = query
        for name in query:
            if name not in (*_KNOWN, *more):
                known = ", ".join((*_KNOWN, *more))
                raise Refusal(ErrorCode.UNKNOWN_FIELD, f"unknown parameter {shown(name)}; known parameters: {known}")

    @property
    def model(self) -> str | None:
        """Which is a voice."""
        return self._query.get("model")

    def number(self, name: str) -> float | None:
        """A parameter that is one."""
        given = self._query.get(name)
        try:
            return None if given is None else float(given)
        except ValueError:
            raise Refusal(ErrorCode.BAD_VALUE, f"{name} must be a number; got {shown(given)}") from None

    def only(self, name: str, allowed: str) -> None:
        """A parameter of which one value is supported."""
        given = self._query.get(name, allowed)
        if given != allowed:
            raise Refusal(ErrorCode.BAD_VALUE, f"{name} must be {allowed}, or left out; got {shown(given)}")

    def config(self, rules: ConfigRules) -> SessionConfig:
        """Of bare samples."""
        self.only("container", "none")
        encoding = self._query.get("encoding", "linear16")
        if encoding not in ENCODINGS:
            raise Refusal(ErrorCode.BAD_VALUE, f"encoding must be one of {', '.join(ENCODINGS)}; got {shown(encoding)}")
        rate, speed = self.number("sample_rate"), self.number("speed")
        changes = {
            "response_format": ENCODINGS[encoding],
            "sample_rate": RATES[encoding] if rate is None else int(rate) if rate.is_integer() else rate,
        }
        if self.model is not None:
            changes["voice"] = self.model
        if speed is not None:
            changes["speed"] = speed
        return rules.apply(rules.defaults, changes)
