"""What the query of a Deepgram request asks for.  Everything here raises Refusal for what it cannot take."""

from __future__ import annotations

from collections.abc import Mapping

from protocol.codes import ErrorCode, Refusal
from protocol.compat.deepgram.flux import speed_problem
from protocol.config import ConfigRules, SessionConfig
from protocol.text import shown

_OF_NO_CONSEQUENCE = ("mip_opt_out", "tag", "token")  # nothing is kept of a request; the key is read elsewhere
_KNOWN = ("model", "encoding", "container", "sample_rate", "speed", *_OF_NO_CONSEQUENCE)

# (encoding, container) -> response_format; the first container of an encoding is its default
STREAMS = {("linear16", "none"): "pcm", ("mulaw", "none"): "mulaw", ("alaw", "none"): "alaw"}
FILES = {
    ("mp3", "none"): "mp3",
    ("linear16", "wav"): "wav",
    ("opus", "ogg"): "opus",
    ("flac", "none"): "flac",
    ("aac", "none"): "aac",
    **STREAMS,
}
_RATES = {"mp3": 22050, "aac": 22050, "opus": 48000, "mulaw": 8000, "alaw": 8000}
_OTHER_RATE = 24000


class DeepgramQuery:
    """`more`: names of parameters that are known besides."""

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

    @property
    def speed(self) -> float | None:
        """Of speech; 1 is its own."""
        return self._number("speed")

    def only(self, name: str, allowed: str) -> None:
        """A parameter of which one value is supported."""
        self._chosen(name, (allowed,))

    def config(self, rules: ConfigRules, formats: Mapping[tuple[str, str], str]) -> SessionConfig:
        """`formats`: those to choose from, the default one first: STREAMS or FILES."""
        encoding = self._chosen("encoding", tuple(dict.fromkeys(encoding for encoding, _ in formats)))
        container = self._chosen("container", tuple(container for of, container in formats if of == encoding))
        rate, speed = self._number("sample_rate"), self.speed
        if rate is None:
            rate = _RATES.get(encoding, _OTHER_RATE)
        changes = {
            "response_format": formats[encoding, container],
            "sample_rate": int(rate) if float(rate).is_integer() else rate,
        }
        if self.model is not None:
            changes["voice"] = self.model
        if speed is not None:
            changes["speed"] = speed
        return rules.apply(rules.defaults, changes)

    def _chosen(self, name: str, allowed: tuple[str, ...]) -> str:
        given = self._query.get(name, allowed[0])
        if given not in allowed:
            raise Refusal(ErrorCode.BAD_VALUE, f"{name} must be one of {', '.join(allowed)}; got {shown(given)}")
        return given

    def _number(self, name: str) -> float | None:
        given = self._query.get(name)
        try:
            return None if given is None else float(given)
        except ValueError:
            raise Refusal(ErrorCode.BAD_VALUE, f"{name} must be a number; got {shown(given)}") from None


def flux_query(query: Mapping[str, str], rules: ConfigRules) -> DeepgramQuery:
    """Of the second protocol: with a model, and rules of its own for the speed."""
    asked = DeepgramQuery(query, "expressivity")
    asked.only("expressivity", "0")
    if asked.model is None:
        raise Refusal(ErrorCode.BAD_VALUE, f"model is missing; voices: {', '.join(rules.voices) or 'none'}")
    problem = None if asked.speed is None else speed_problem(asked.speed)
    if problem is not None:
        raise Refusal(ErrorCode.BAD_VALUE, ": ".join(problem))
    return asked
