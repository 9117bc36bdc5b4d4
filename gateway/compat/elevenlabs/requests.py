"""ElevenLabs' speech as the answer to a request: `POST /v1/text-to-speech/{voice_id}`, `…/stream`, and with times."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from gateway.compat.elevenlabs.refusals import elevenlabs_refusal
from gateway.http.refusals import Denial
from gateway.http.speech_request import Asked
from protocol.compat.answer import Answer
from protocol.compat.elevenlabs.call import read_call
from protocol.compat.elevenlabs.timestamps import TimedAnswer, TimedStream
from protocol.config import ConfigRules, SessionConfig

_CONTENT_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
    "mulaw": "audio/basic",
    "alaw": "audio/x-alaw-basic",
}


class ElevenLabsSpeech:
    """`answer`: how one is given, by the config."""

    def __init__(self, answer: Callable[[SessionConfig], Answer]) -> None:
        self._answer = answer

    def read(self, request: web.Request, body: bytes, rules: ConfigRules) -> Asked:
        text, changes = read_call(body, request.query)
        config = rules.apply(rules.defaults, {"voice": request.match_info["voice_id"], **changes})
        return Asked(text, config, None, self._answer(config))

    def refuse(self, denial: Denial) -> web.Response:
        return elevenlabs_refusal(denial)


def _audio(config: SessionConfig) -> Answer:
    return Answer(_CONTENT_TYPES[config.response_format])


def _timed(config: SessionConfig) -> Answer:
    return TimedAnswer(config.rate)


def _timed_stream(config: SessionConfig) -> Answer:
    return TimedStream(config.rate)


APIS = {
    "/v1/text-to-speech/{voice_id}": ElevenLabsSpeech(_audio),
    "/v1/text-to-speech/{voice_id}/stream": ElevenLabsSpeech(_audio),
    "/v1/text-to-speech/{voice_id}/with-timestamps": ElevenLabsSpeech(_timed),
    "/v1/text-to-speech/{voice_id}/stream/with-timestamps": ElevenLabsSpeech(_timed_stream),
}
"""By path.  Audio is sent as it is made, be it called a stream or not."""
