"""Where Deepgram's clients come in."""

from __future__ import annotations

from aiohttp import web

from gateway.compat.deepgram.doors import AURA_PATH, FLUX_PATH, AuraDoor, FluxDoor
from gateway.compat.deepgram.requests import AuraSpeech, FluxSpeech
from gateway.http.endpoint import StreamEndpoint
from gateway.http.speech_endpoint import SpeechEndpoint


def add_deepgram(app: web.Application, sockets: StreamEndpoint, requests: SpeechEndpoint) -> None:
    """Both protocols, each over a WebSocket and as the answer to a request."""
    for door in (AuraDoor(), FluxDoor()):
        app.router.add_get(door.path, sockets.through(door))
    app.router.add_post(AURA_PATH, requests.of(AuraSpeech()))
    app.router.add_post(FLUX_PATH, requests.of(FluxSpeech()))
