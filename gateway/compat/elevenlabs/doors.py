"""ElevenLabs' two sockets: from the request's path and query to a session."""

from __future__ import annotations

from dataclasses import replace

import orjson
from aiohttp import web

from gateway.compat.elevenlabs.refusals import elevenlabs_refusal
from gateway.http.door import Farewell, Opening
from gateway.http.refusals import Denial
from protocol.codes import CloseCode
from protocol.compat.elevenlabs.errors import close_reason, error_message
from protocol.compat.elevenlabs.messages import read_key
from protocol.compat.elevenlabs.multi_stream_input import MultiStreamInput
from protocol.compat.elevenlabs.options import read_options
from protocol.compat.elevenlabs.stream_input import StreamInput
from protocol.config import ConfigRules
from protocol.limits import Limits


class ElevenLabsDoor:
    """`name`: the end of its path."""

    subprotocols: tuple[str, ...] = ()

    def __init__(self, name: str, dialect: type[StreamInput | MultiStreamInput]) -> None:
        self.path = f"/v1/text-to-speech/{{voice_id}}/{name}"
        self._dialect = dialect

    def open(self, request: web.Request, rules: ConfigRules, limits: Limits) -> Opening:
        options = read_options(request.query)
        changes = {"voice": request.match_info["voice_id"], **options.changes}
        limits = replace(
            limits,
            config_message_bytes=limits.message_bytes,  # none of their messages is as long as a recording
            idle_s=min(limits.idle_s, options.inactivity_s),
            context_idle_s=min(limits.context_idle_s, options.inactivity_s),
        )
        dialect = self._dialect(options.auto_mode, options.inactivity_s)
        return Opening(dialect, rules.apply(rules.defaults, changes), limits)

    def refuse(self, denial: Denial) -> web.Response:
        return elevenlabs_refusal(denial)

    def key_in(self, first: bytes) -> str | None:
        return read_key(first.decode(errors="replace"))

    def farewell(self, denial: Denial) -> Farewell:
        told = error_message(denial.code, denial.message)
        return Farewell(orjson.dumps(told), CloseCode(told["code"]), close_reason(denial.message))


DOORS = (ElevenLabsDoor("stream-input", StreamInput), ElevenLabsDoor("multi-stream-input", MultiStreamInput))
