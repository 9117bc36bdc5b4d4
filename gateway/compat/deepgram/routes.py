"""Where Deepgram's clients come in."""

from __future__ import annotations

from aiohttp import web

from gateway.compat.deepgram.doors import AuraDoor, FluxDoor
from gateway.http.endpoint import StreamEndpoint


def add_deepgram(app: web.Application, endpoint: StreamEndpoint) -> None:
    """`/v1/speak` and `/v2/speak`."""
    for door in (AuraDoor(), FluxDoor()):
        app.router.add_get(door.path, endpoint.through(door))
