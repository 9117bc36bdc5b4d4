"""Deepgram's speech over a WebSocket: `/v1/speak` (Aura) and `/v2/speak` (Flux)."""

from __future__ import annotations

import uuid
from dataclasses import replace

from aiohttp import web

from gateway.compat.deepgram.query import DeepgramQuery
from gateway.http.door import Opening
from gateway.http.refusals import Denial
from protocol.codes import ErrorCode, Refusal
from protocol.compat.deepgram.aura import Aura
from protocol.compat.deepgram.flux import Flux, speed_problem
from protocol.config import ConfigRules
from protocol.limits import Limits

_IDLE_S = 3600.0  # pools of their clients keep a socket for so long, and send nothing meanwhile
_CONTEXTS = 64  # their turns wait behind one another, however many

_ERR_CODES = {
    ErrorCode.UNAUTHORIZED: "INVALID_AUTH",
    ErrorCode.FORBIDDEN_ORIGIN: "INSUFFICIENT_PERMISSIONS",
    ErrorCode.RATE_LIMITED: "TOO_MANY_REQUESTS",
    ErrorCode.BAD_VALUE: "INVALID_QUERY_PARAMETER",
    ErrorCode.UNKNOWN_FIELD: "INVALID_QUERY_PARAMETER",
    ErrorCode.UNKNOWN_VOICE: "INVALID_QUERY_PARAMETER",
}


class AuraDoor:
    """`model` is a voice, the first one if it is left out."""

    path = "/v1/speak"
    subprotocols = ("token", "bearer")  # pages offer their key behind one of them

    def open(self, request: web.Request, rules: ConfigRules, limits: Limits) -> Opening:
        query = DeepgramQuery(request.query)
        config = query.config(rules)
        dialect = Aura(str(uuid.uuid4()), query.model or config.voice or "")
        return Opening(dialect, config, patient(limits))

    def refuse(self, denial: Denial) -> web.Response:
        return deepgram_refusal(denial)


class FluxDoor(AuraDoor):
    """`model` is a voice, and has to be there."""

    path = "/v2/speak"

    def open(self, request: web.Request, rules: ConfigRules, limits: Limits) -> Opening:
        query = DeepgramQuery(request.query, "expressivity")
        if query.model is None:
            raise Refusal(ErrorCode.BAD_VALUE, f"model is missing; voices: {', '.join(rules.voices) or 'none'}")
        query.only("expressivity", "0")
        speed = query.number("speed")
        problem = None if speed is None else speed_problem(speed)
        if problem is not None:
            raise Refusal(ErrorCode.BAD_VALUE, ": ".join(problem))
        return Opening(Flux(str(uuid.uuid4()), query.model, speed), query.config(rules), patient(limits))


def patient(limits: Limits) -> Limits:
    """With what their clients take for granted."""
    return replace(limits, idle_s=max(limits.idle_s, _IDLE_S), contexts=max(limits.contexts, _CONTEXTS))


def deepgram_refusal(denial: Denial) -> web.Response:
    """A refusal in Deepgram's words; its clients show the headers of one that comes before an upgrade."""
    request_id = str(uuid.uuid4())
    err_code = _ERR_CODES.get(denial.code, denial.code.upper())
    response = denial.answer({"err_code": err_code, "err_msg": denial.message, "request_id": request_id})
    response.headers["dg-error"] = denial.message.encode("ascii", "replace").decode()
    response.headers["dg-request-id"] = request_id
    return response
