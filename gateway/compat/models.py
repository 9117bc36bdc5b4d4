"""`GET /v1/models`, which OpenAI's and ElevenLabs' clients both ask for, and each expects in its own shape."""

from __future__ import annotations

from aiohttp import web

from gateway.compat.elevenlabs.lists import ElevenLabsLists
from gateway.compat.openai import Models
from gateway.http.gatekeeper import Gatekeeper
from gateway.service import Service


def add_models(app: web.Application, service: Service, gatekeeper: Gatekeeper) -> None:
    """ElevenLabs' clients are known by the header that brings their key."""
    models, lists = Models(service, gatekeeper), ElevenLabsLists(service, gatekeeper)
    list_all, list_theirs = models.guarded(models.list_all), lists.guarded(lists.list_models)

    async def handle(request: web.Request) -> web.Response:
        return await (list_theirs if "xi-api-key" in request.headers else list_all)(request)

    app.router.add_get("/v1/models", handle)
    app.router.add_get("/v1/models/{name:.+}", models.guarded(models.show))
