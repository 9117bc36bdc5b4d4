"""Deepgram's speech as the answer to a request: `POST /v1/speak` and `POST /v2/speak`."""

from __future__ import annotations

from aiohttp import web

from gateway.compat.deepgram.query import FILES, DeepgramQuery, flux_query
from gateway.compat.deepgram.refusals import deepgram_refusal
from gateway.http.refusals import Denial
from gateway.http.speech_request import Asked
from protocol.codes import ErrorCode, Refusal
from protocol.compat.answer import Answer
from protocol.compat.body import read_object
from protocol.config import ConfigRules, SessionConfig
from protocol.text import shown

_FILE_TYPES = {"mp3": "audio/mpeg", "wav": "audio/wav", "opus": "audio/ogg", "flac": "audio/flac", "aac": "audio/aac"}
_SAMPLE_TYPES = {"pcm": "audio/l16", "mulaw": "audio/mulaw", "alaw": "audio/alaw"}


class AuraSpeech:
    """`model` is a voice, the first one if it is left out."""

    def read(self, request: web.Request, body: bytes, rules: ConfigRules) -> Asked:
        return _asked(DeepgramQuery(request.query), body, rules)

    def refuse(self, denial: Denial) -> web.Response:
        return deepgram_refusal(denial)


class FluxSpeech(AuraSpeech):
    """`model` is a voice, and has to be there."""

    def read(self, request: web.Request, body: bytes, rules: ConfigRules) -> Asked:
        return _asked(flux_query(request.query, rules), body, rules)


def _asked(query: DeepgramQuery, body: bytes, rules: ConfigRules) -> Asked:
    config = query.config(rules, FILES)
    return Asked(_text(body), config, None, Answer(_content_type(config)))


def _text(body: bytes) -> str:
    """Raises Refusal."""
    text = read_object(body).get("text")
    if not isinstance(text, str) or not text.strip():
        raise Refusal(ErrorCode.BAD_MESSAGE, f"text must be a string that is not empty; got {shown(text)}")
    return text


def _content_type(config: SessionConfig) -> str:
    kind = config.response_format
    return _FILE_TYPES.get(kind) or f"{_SAMPLE_TYPES[kind]};rate={config.rate};channels=1"
