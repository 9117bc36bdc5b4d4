"""Deepgram's speech over a WebSocket: `/v1/speak` (Aura) and `/v2/speak` (Flux)."""

from __future__ import annotations

import uuid
from dataclasses import replace

from aiohttp import web

from gateway.compat.deepgram.query import STREAMS, DeepgramQuery, flux_query
from gateway.compat.deepgram.refusals import deepgram_refusal
from gateway.http.door import Opening
from gateway.http.refusals import Denial
from protocol.compat.deepgram.aura import Aura
from protocol.compat.deepgram.flux import Flux
from protocol.config import ConfigRules
from protocol.limits import Limits

AURA_PATH, FLUX_PATH = "/v1/speak", "/v2/speak"

_IDLE_S = 3600.0  # pools of their clients keep a socket for so long, and send nothing meanwhile
_CONTEXTS = 64  # their turns wait behind one another, however many
_SCHEMES = ("token", "bearer")  # subprotocols behind which pages offer their key


class AuraDoor:
    """`model` is a voice, the first one if it is left out."""

    path = AURA_PATH
    subprotocols = _SCHEMES

    def open(self, request: web.Request, rules: ConfigRules, limits: Limits) -> Opening:
        query = DeepgramQuery(request.query)
        config = query.config(rules, STREAMS)
        return Opening(Aura(str(uuid.uuid4()), query.model or config.voice or ""), config, _patient(limits))

    def refuse(self, denial: Denial) -> web.Response:
        return deepgram_refusal(denial)


class FluxDoor:
    """`model` is a voice, and has to be there."""

    path = FLUX_PATH
    subprotocols = _SCHEMES

    def open(self, request: web.Request, rules: ConfigRules, limits: Limits) -> Opening:
        query = flux_query(request.query, rules)
        config = query.config(rules, STREAMS)
        return Opening(Flux(str(uuid.uuid4()), query.model, query.speed), config, _patient(limits))

    def refuse(self, denial: Denial) -> web.Response:
        return deepgram_refusal(denial)


def _patient(limits: Limits) -> Limits:
    """With what their clients take for granted."""
    return replace(limits, idle_s=max(limits.idle_s, _IDLE_S), contexts=max(limits.contexts, _CONTEXTS))
