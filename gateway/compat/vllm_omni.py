"""vLLM-Omni's WebSocket: from the request to a session."""

from __future__ import annotations

from aiohttp import web

from gateway.compat.openai import openai_refusal
from gateway.http.door import Opening
from gateway.http.refusals import Denial
from protocol.compat.vllm_omni.dialect import VllmOmni
from protocol.config import ConfigRules
from protocol.limits import Limits


class VllmOmniDoor:
    """All that a session needs comes in its first message."""

    path = "/v1/audio/speech/stream"
    subprotocols: tuple[str, ...] = ()

    def open(self, _: web.Request, rules: ConfigRules, limits: Limits) -> Opening:
        return Opening(VllmOmni(rules), rules.defaults, limits)

    def refuse(self, denial: Denial) -> web.Response:
        return openai_refusal(denial)
