"""OpenAI's endpoints: `POST /v1/audio/speech`, and `GET /v1/models` of its clients."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from aiohttp import web

from gateway.http.gatekeeper import Gatekeeper
from gateway.http.pages import json_answer
from gateway.http.refusals import Denial
from gateway.http.speech_endpoint import SpeechEndpoint
from gateway.http.speech_request import Asked
from gateway.service import Service
from protocol.codes import ErrorCode, Refusal
from protocol.compat.openai import answer_of, error_body, read_call
from protocol.compat.speech_fields import check_model
from protocol.config import ConfigRules

_OWNER = "audio8-gateway"
_PATHS = (
    "/v1/audio/speech", "/v1/audio/transcriptions", "/v1/audio/translations", "/v1/chat/", "/v1/completions",
    "/v1/embeddings", "/v1/models", "/v1/realtime", "/v1/responses",
)  # fmt: skip
_CODES_BY_STATUS = {HTTPStatus.NOT_FOUND: "unknown_url", HTTPStatus.METHOD_NOT_ALLOWED: "method_not_supported"}


def add_openai(app: web.Application, service: Service, endpoint: SpeechEndpoint) -> None:
    """Speech; the models are in `models.py`."""
    app.router.add_post("/v1/audio/speech", endpoint.of(OpenAiSpeech(service)))


class OpenAiSpeech:
    """`POST /v1/audio/speech`."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def read(self, _: web.Request, body: bytes, rules: ConfigRules) -> Asked:
        call = read_call(body)
        check_model(call.model, self._service.engine.info.name)
        config, reference = rules.apply_all(rules.defaults, call.changes)
        return Asked(call.text, config, reference, answer_of(call))

    def refuse(self, denial: Denial) -> web.Response:
        return openai_refusal(denial)


class Models:
    """The one model that is served."""

    def __init__(self, service: Service, gatekeeper: Gatekeeper) -> None:
        self._service, self._gatekeeper = service, gatekeeper
        self._created = int(time.time())

    def guarded(
        self, handler: Callable[[web.Request], web.Response]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Not for those who may not speak, nor before the model is there."""

        async def handle(request: web.Request) -> web.Response:
            denial = self._gatekeeper.denial(request)
            if denial is None and not self._service.engine.ready:
                denial = self._gatekeeper.busy("the model is being loaded")
            return handler(request) if denial is None else openai_refusal(denial)

        return handle

    def list_all(self, _: web.Request) -> web.Response:
        """Under its own name only."""
        return json_answer(HTTPStatus.OK, {"object": "list", "data": [self._told(self._service.engine.info.name)]})

    def show(self, request: web.Request) -> web.Response:
        """Under any name that a request for speech may give it."""
        name = request.match_info["name"]
        try:
            check_model(name, self._service.engine.info.name)
        except Refusal as refused:
            return openai_refusal(Denial(HTTPStatus.NOT_FOUND, ErrorCode.NOT_FOUND, refused.message))
        return json_answer(HTTPStatus.OK, self._told(name))

    def _told(self, name: str) -> dict[str, object]:
        return {"id": name, "object": "model", "created": self._created, "owned_by": _OWNER}


def openai_refusal(denial: Denial) -> web.Response:
    """A refusal in OpenAI's words."""
    return denial.answer(error_body(denial.code, denial.message))


def _not_served(denial: Denial) -> web.Response:
    """A refusal of an address or a method, with the codes that OpenAI has for those."""
    body = error_body(denial.code, denial.message)
    body["error"]["code"] = _CODES_BY_STATUS.get(denial.status, denial.code)
    return denial.answer(body)


OPENAI_WORDS = dict.fromkeys(_PATHS, _not_served)
"""For `json_errors`: by how a path begins that its clients may ask for, be it here or not."""
