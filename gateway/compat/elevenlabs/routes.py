"""Where ElevenLabs' clients come in."""

from __future__ import annotations

from aiohttp import web

from gateway.compat.elevenlabs.doors import DOORS
from gateway.compat.elevenlabs.lists import ElevenLabsLists
from gateway.compat.elevenlabs.requests import APIS
from gateway.http.endpoint import StreamEndpoint
from gateway.http.gatekeeper import Gatekeeper
from gateway.http.speech_endpoint import SpeechEndpoint
from gateway.service import Service


def add_elevenlabs(
    app: web.Application, service: Service, gatekeeper: Gatekeeper, sockets: StreamEndpoint, requests: SpeechEndpoint
) -> None:
    """Speech over both sockets and as the answer to a request; and the voices."""
    for door in DOORS:
        app.router.add_get(door.path, sockets.through(door))
    for path, api in APIS.items():
        app.router.add_post(path, requests.of(api))
    lists = ElevenLabsLists(service, gatekeeper)
    app.router.add_get("/v1/voices", lists.guarded(lists.list_all))
    app.router.add_get("/v1/voices/{voice_id}", lists.guarded(lists.show))
    app.router.add_get("/v2/voices", lists.guarded(lists.list_page))
