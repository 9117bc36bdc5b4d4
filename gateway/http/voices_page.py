"""`GET`, `POST` and `DELETE` of `/v1/audio/voices`: the voices that can be chosen by name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from http import HTTPStatus

from aiohttp import web

from gateway.engine.stream import EngineError
from gateway.errors import Overloaded
from gateway.http.gatekeeper import Gatekeeper
from gateway.http.pages import json_answer
from gateway.http.refusals import Denial, refusal
from gateway.http.voice_form import FormError, VoiceForm, read_form
from gateway.service import Service
from gateway.text.languages import known_languages
from gateway.voices.recording_rules import BadRecording
from gateway.voices.store import NAME, UploadedVoice
from gateway.voices.voices import NameInUse, TooManyVoices, UnknownVoice
from inference.messages import VoiceInfo
from protocol.codes import ErrorCode

log = logging.getLogger(__name__)

PATH = "/v1/audio/voices"
_UPLOAD_S = 60.0
_UPLOADS = 4  # at a time: each holds a file in memory

Handler = Callable[[web.Request], Awaitable[web.Response]]


def add_voices(app: web.Application, service: Service, gatekeeper: Gatekeeper) -> None:
    """Whoever may speak may also list, add and remove."""
    pages = VoicesPages(service, gatekeeper)
    app.router.add_get(PATH, pages.guarded(pages.list_all))
    app.router.add_post(PATH, pages.guarded(pages.upload))
    app.router.add_delete(PATH + "/{name}", pages.guarded(pages.delete))


class VoicesPages:
    """The three requests."""

    def __init__(self, service: Service, gatekeeper: Gatekeeper) -> None:
        self._service, self._gatekeeper = service, gatekeeper
        self._uploads = 0

    def guarded(self, handler: Handler) -> Handler:
        """Not for those who may not speak, nor before the model is there."""

        async def handle(request: web.Request) -> web.Response:
            denied = self._gatekeeper.denial(request)
            if denied is not None:
                return refusal(denied)
            if not self._service.engine.ready:
                return self._busy("the model is being loaded")
            return await handler(request)

        return handle

    async def list_all(self, _: web.Request) -> web.Response:
        """All voices, the default one first."""
        voices = self._service.voices
        built_in = [_told(info, origin="built_in") for info in voices.built_in]
        return json_answer(HTTPStatus.OK, {"voices": built_in + [self._uploaded(v) for v in voices.uploaded.values()]})

    async def upload(self, request: web.Request) -> web.Response:
        """Check and keep a voice: all or nothing."""
        if self._uploads >= _UPLOADS:
            return self._busy(f"{self._uploads} voices are being uploaded, which is the limit")
        self._uploads += 1
        try:
            return await self._upload(request)
        except FormError as error:
            return refusal(Denial(error.status, error.code, str(error)))
        except BadRecording as error:
            return refusal(Denial(HTTPStatus.BAD_REQUEST, ErrorCode.BAD_VALUE, f"audio_sample: {error}"))
        except (NameInUse, TooManyVoices) as error:
            return refusal(Denial(HTTPStatus.CONFLICT, ErrorCode.BAD_VALUE, f"name: {error}"))
        except Overloaded as error:
            return self._busy(str(error))
        except EngineError as error:
            if error.retry:
                return self._busy(error.message, ErrorCode(error.code))
            return refusal(Denial(HTTPStatus.SERVICE_UNAVAILABLE, ErrorCode(error.code), error.message))
        except OSError as error:
            return _disk_failed(error)
        finally:
            self._uploads -= 1

    async def delete(self, request: web.Request) -> web.Response:
        """Remove an uploaded voice; contexts that speak with it go on."""
        name = request.match_info["name"]
        if any(info.name == name for info in self._service.voices.built_in):
            message = f"{name!r} is a voice of the model, which cannot be deleted"
            return refusal(Denial(HTTPStatus.CONFLICT, ErrorCode.BAD_VALUE, message))
        try:
            await self._service.voices.delete(name)
        except UnknownVoice as error:
            return refusal(Denial(HTTPStatus.NOT_FOUND, ErrorCode.UNKNOWN_VOICE, str(error)))
        except OSError as error:
            return _disk_failed(error)
        log.info("voice deleted name=%s", name)
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def _upload(self, request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(_UPLOAD_S):
                form = await read_form(request, self._service.settings.limits.voice_bytes)
        except TimeoutError:
            message = f"the upload took longer than {_UPLOAD_S:g} s"
            raise FormError(HTTPStatus.REQUEST_TIMEOUT, ErrorCode.IDLE_TIMEOUT, message) from None
        self._check(form)
        self._service.voices.check_free(form.name)
        reference = await self._service.coder.reference(form.audio, form.text)
        voice = UploadedVoice(
            VoiceInfo(form.name, form.language or "en", form.description),
            reference,
            form.consent,
            self._gatekeeper.owner(request),
            datetime.now(UTC).isoformat(timespec="seconds"),
        )
        await self._service.voices.add(voice)
        log.info("voice uploaded name=%s frames=%d key=%s", form.name, reference.codes.shape[1], voice.owner or "-")
        return json_answer(HTTPStatus.CREATED, self._uploaded(voice))

    def _check(self, form: VoiceForm) -> None:
        """Raises FormError."""
        if not NAME.fullmatch(form.name):
            raise FormError.of("name", f"must match {NAME.pattern}")
        known = known_languages(self._service.voices.built_in)
        if form.language and form.language not in known:
            raise FormError.of("language", f"must be one of {', '.join(known)}")

    def _uploaded(self, voice: UploadedVoice) -> dict[str, object]:
        info = self._service.engine.info
        seconds = voice.reference.codes.shape[1] * info.frame_samples / info.sample_rate
        return _told(voice.info, origin="uploaded", created_at=voice.created_at, seconds=round(seconds, 2))

    def _busy(self, message: str, code: ErrorCode = ErrorCode.OVERLOADED) -> web.Response:
        return refusal(self._gatekeeper.busy(message, code))


def _told(info: VoiceInfo, **more: object) -> dict[str, object]:
    """`id`: the name, for clients that choose by it."""
    return {"id": info.name, "name": info.name, "language": info.language, "description": info.description, **more}


def _disk_failed(error: OSError) -> web.Response:
    log.error("voices cannot be written: %s", error)
    message = "the server could not write the voice to its disk"
    return refusal(Denial(HTTPStatus.INTERNAL_SERVER_ERROR, ErrorCode.INTERNAL, message))
