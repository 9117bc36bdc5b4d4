"""What Deepgram's two speech protocols share: JSON messages with a `type`, and the codes of their errors."""

from __future__ import annotations

import uuid
from collections.abc import Collection

import orjson

from protocol.codes import CloseCode, ErrorCode, FatalRefusal, Refusal
from protocol.dialect import Dialect
from protocol.text import parse_json, shown

KEEP_ALIVE = "KeepAlive"  # of their other WebSocket APIs; here it only shows that the client is there

_HEARTBEAT_EVERY = 3  # signs of life of a silent context: about every 5 s; LiveKit's plugins wait for 10 s
_MOST_REASON = 120  # bytes of a close frame's reason
_CODES = {
    ErrorCode.MESSAGE_TOO_BIG: "BIG-0000",
    ErrorCode.IDLE_TIMEOUT: "NET-0001",
    ErrorCode.PROTOCOL_ERROR: "MESSAGE-0000",
    ErrorCode.BAD_JSON: "DATA-0000",
    ErrorCode.BAD_MESSAGE: "DATA-0000",
    ErrorCode.BAD_VALUE: "DATA-0000",
    ErrorCode.UNKNOWN_TYPE: "DATA-0000",
}
_OTHER_CODE = "NET-0000"


def model_uuid(model: str) -> str:
    """A name for a model in the form that the protocol has for it: the same for the same model."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, model))


class DeepgramDialect(Dialect):
    """Says messages, and what is wrong.  `request_id`: the connection's name; `model`: the one that was asked for.

    Nothing that is wrong with a message can be told but by ending the connection.
    """

    failure_ends_all = True
    kinds: Collection[str] = ()

    def __init__(self, request_id: str, model: str) -> None:
        super().__init__()
        self._request_id, self._model = request_id, model
        self._signs_of_life = 0

    def _read(self, data: str) -> tuple[str, dict[str, object]]:
        """(type, fields) of a message.  Raises FatalRefusal."""
        try:
            value = parse_json(data)
        except Refusal as refusal:
            raise fatal_refusal(refusal.code, refusal.message) from None
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            raise fatal_refusal(ErrorCode.BAD_MESSAGE, f"a message is a JSON object with a type; got {shown(value)}")
        if kind not in self.kinds:
            raise fatal_refusal(
                ErrorCode.UNKNOWN_TYPE, f"unknown type {shown(kind)}; known types: {', '.join(self.kinds)}"
            )
        return kind, value

    def _text(self, fields: dict[str, object]) -> str:
        """Of a `Speak`."""
        text = fields.get("text")
        if not isinstance(text, str):
            raise fatal_refusal(ErrorCode.BAD_MESSAGE, f"Speak needs text, a string; got {shown(text)}")
        return text

    def _beats(self) -> bool:
        """Whether this sign of life is one to be told."""
        self._signs_of_life += 1
        return self._signs_of_life % _HEARTBEAT_EVERY == 0

    def _say(self, kind: str, **fields: object) -> None:
        self._say_text(orjson.dumps({"type": kind} | fields))

    def _warn(self, code: str, description: str) -> None:
        """The first two fields are those of the specification, the others those of the first protocol's server."""
        self._say("Warning", code=code, description=description, warn_code=code, warn_msg=description)

    # What the session says ------------------------------------------------------------------------------------------

    def error(self, code: ErrorCode, message: str, fatal: bool = False, **given: object) -> None:
        """A refusal is a warning; what ends a context ends the connection, and is told by that."""
        if fatal:
            fields = {
                "type": "Error",
                "code": _code(code),
                "description": message,
                "err_code": code,
                "err_msg": message,
            }
            self._say_text(orjson.dumps(fields), error=code)
        elif given.get("context_id") is None:
            self._warn(code.upper(), message)

    def closing_reason(self, code: ErrorCode, message: str) -> str:
        return f"{_code(code)}: {message}".encode()[:_MOST_REASON].decode(errors="ignore")


def _code(code: ErrorCode) -> str:
    return _CODES.get(code, _OTHER_CODE)


def fatal_refusal(code: ErrorCode, message: str) -> FatalRefusal:
    """What is wrong with a message."""
    return FatalRefusal(code, CloseCode.POLICY, message)
