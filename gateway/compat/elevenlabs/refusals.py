"""How ElevenLabs' clients are told that a request is not served."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus

from aiohttp import web

from gateway.http.refusals import Denial
from protocol.codes import ErrorCode
from protocol.compat.elevenlabs.errors import error_detail

_PATHS = (
    "/v1/text-to-speech", "/v1/text-to-dialogue", "/v1/text-to-voice", "/v1/speech-to-speech", "/v1/speech-to-text",
    "/v1/sound-generation", "/v1/voices", "/v2/voices", "/v1/history", "/v1/user",
)  # fmt: skip


def elevenlabs_refusal(denial: Denial) -> web.Response:
    """A refusal in ElevenLabs' words.  A voice that is not there is one of the address."""
    if denial.code is ErrorCode.UNKNOWN_VOICE:
        denial = replace(denial, status=HTTPStatus.NOT_FOUND)
    return denial.answer(error_detail(denial.code, denial.message))


ELEVENLABS_WORDS = dict.fromkeys(_PATHS, elevenlabs_refusal)
"""For `json_errors`: by how a path begins that its clients may ask for, be it here or not."""
