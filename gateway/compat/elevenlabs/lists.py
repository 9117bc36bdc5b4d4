"""The voices as ElevenLabs lists them: `GET /v1/voices`, `/v1/voices/{voice_id}` and, page by page, `/v2/voices`.

And the model, in `GET /v1/models`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from http import HTTPStatus

from aiohttp import web

from gateway.compat.elevenlabs.refusals import elevenlabs_refusal
from gateway.http.gatekeeper import Gatekeeper
from gateway.http.pages import json_answer
from gateway.http.refusals import Denial
from gateway.service import Service
from gateway.voices.store import UploadedVoice
from inference.messages import VoiceInfo
from protocol.codes import ErrorCode, Refusal
from protocol.text import shown

_BUILT_IN, _UPLOADED = "premade", "cloned"  # what they call those
_MOST_ON_A_PAGE, _ON_A_PAGE = 100, 10
_FILTERS = ("search", "category", "language", "voice_ids")
_KNOWN = ("page_size", "next_page_token", "include_total_count", *_FILTERS)


class ElevenLabsLists:
    """A method for each request."""

    def __init__(self, service: Service, gatekeeper: Gatekeeper) -> None:
        self._service, self._gatekeeper = service, gatekeeper

    def guarded(
        self, handler: Callable[[web.Request], web.Response]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Not for those who may not speak, nor before the model is there."""

        async def handle(request: web.Request) -> web.Response:
            denial = self._gatekeeper.denial(request)
            if denial is None and not self._service.engine.ready:
                denial = self._gatekeeper.busy("the model is being loaded")
            try:
                return handler(request) if denial is None else elevenlabs_refusal(denial)
            except Refusal as refused:
                return elevenlabs_refusal(Denial(HTTPStatus.BAD_REQUEST, refused.code, refused.message))

        return handle

    def list_all(self, _: web.Request) -> web.Response:
        """All voices, the default one first."""
        return json_answer(HTTPStatus.OK, {"voices": self._all()})

    def show(self, request: web.Request) -> web.Response:
        """One voice, by its name or by another one of it."""
        name = request.match_info["voice_id"]
        real = name if name in self._service.voices else self._service.settings.voice_aliases.get(name)
        for told in self._all():
            if told["voice_id"] == real:
                return json_answer(HTTPStatus.OK, told)
        voices = ", ".join(self._service.voices) or "none"
        raise Refusal(ErrorCode.UNKNOWN_VOICE, f"unknown voice {shown(name)}; voices: {voices}")

    def list_page(self, request: web.Request) -> web.Response:
        """Those that the query asks for, so many of them."""
        for key in request.query:
            if key not in _KNOWN:
                message = f"unknown parameter {shown(key)}; known parameters: {', '.join(_KNOWN)}"
                raise Refusal(ErrorCode.UNKNOWN_FIELD, message)
        size = _integer(request, "page_size", _ON_A_PAGE, 1, _MOST_ON_A_PAGE)
        start = _integer(request, "next_page_token", 0, 0, self._service.settings.limits.voices + _MOST_ON_A_PAGE)
        found = [told for told in self._all() if _fits(told, request)]
        more = start + size < len(found)
        page = {"voices": found[start : start + size], "has_more": more, "total_count": len(found)}
        return json_answer(HTTPStatus.OK, page | {"next_page_token": str(start + size) if more else None})

    def list_models(self, _: web.Request) -> web.Response:
        """The one that is served."""
        languages = sorted({info.language for info in self._service.voices.infos})
        model = {
            "model_id": self._service.engine.info.name,
            "name": self._service.engine.info.name,
            "can_do_text_to_speech": True,
            "can_do_voice_conversion": False,
            "can_be_finetuned": False,
            "can_use_style": False,
            "can_use_speaker_boost": False,
            "maximum_text_length_per_request": self._service.settings.limits.text_characters,
            "languages": [{"language_id": code, "name": code} for code in languages],
        }
        return json_answer(HTTPStatus.OK, [model])

    def _all(self) -> list[dict[str, object]]:
        voices = self._service.voices
        uploaded = [_told(voice.info, _UPLOADED) | _since(voice) for voice in voices.uploaded.values()]
        return [_told(info, _BUILT_IN) for info in voices.built_in] + uploaded


def _told(info: VoiceInfo, category: str) -> dict[str, object]:
    return {
        "voice_id": info.name,
        "name": info.name,
        "category": category,
        "labels": {"language": info.language},
        "description": info.description,
        "settings": {"speed": 1.0},
        "samples": None,
        "preview_url": None,
        "available_for_tiers": [],
        "high_quality_base_model_ids": [],
        "is_owner": category == _UPLOADED,
    }


def _since(voice: UploadedVoice) -> dict[str, object]:
    return {"created_at_unix": int(datetime.fromisoformat(voice.created_at).timestamp())}


def _fits(told: dict[str, object], request: web.Request) -> bool:
    """It is among what the query looks for."""
    query, (names, languages) = request.query, (request.query.getall(key, []) for key in ("voice_ids", "language"))
    texts = (told["name"], told["description"], told["category"], *told["labels"].values())
    return (
        (not names or told["voice_id"] in names)
        and (not languages or told["labels"]["language"] in languages)
        and query.get("category", told["category"]) == told["category"]
        and any(query.get("search", "").lower() in text.lower() for text in texts)
    )


def _integer(request: web.Request, key: str, default: int, least: int, most: int) -> int:
    given = request.query.get(key, str(default))
    if not (given.isascii() and given.isdecimal() and len(given) < 10 and least <= int(given) <= most):
        raise Refusal(ErrorCode.BAD_VALUE, f"{key} must be an integer from {least} to {most}; got {shown(given)}")
    return int(given)
