"""The WebSocket APIs of this server: each is a door, behind which all sessions are the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from aiohttp import web

from gateway.http.refusals import Denial, refusal
from protocol.codes import CloseCode
from protocol.config import ConfigRules, SessionConfig
from protocol.dialect import Dialect
from protocol.limits import Limits
from protocol.messages import SUBPROTOCOL
from protocol.native import Native


@dataclass(frozen=True, slots=True)
class Opening:
    """How a session begins.  `config`: what its contexts are spoken with until the client says otherwise."""

    dialect: Dialect
    config: SessionConfig
    limits: Limits


class Door(Protocol):
    """One API.  `path`: as aiohttp's router takes it.  `subprotocols`: those that it may agree on."""

    path: str
    subprotocols: tuple[str, ...]

    def open(self, request: web.Request, rules: ConfigRules, limits: Limits) -> Opening:
        """The session that the request asks for.  Raises Refusal."""

    def refuse(self, denial: Denial) -> web.Response:
        """The answer to a request that is not upgraded, as clients of this API expect it."""


@dataclass(frozen=True, slots=True)
class Farewell:
    """What the client hears instead of a session: a text message, and the close."""

    data: bytes
    close: CloseCode
    reason: str


@runtime_checkable
class TalkingDoor(Door, Protocol):
    """An API whose client may bring its key in its first message, and hears on the open socket why it is refused.

    What is no fault of that client's (a foreign page, no room) is still told before the upgrade.
    """

    def key_in(self, first: bytes) -> str | None:
        """The key that the first message brings."""

    def farewell(self, denial: Denial) -> Farewell:
        """Why there is no session."""


class NativeDoor:
    """Our own protocol: a session begins with the server's defaults."""

    path = "/v1/stream"
    subprotocols = (SUBPROTOCOL,)

    def open(self, _: web.Request, rules: ConfigRules, limits: Limits) -> Opening:
        return Opening(Native(), rules.defaults, limits)

    def refuse(self, denial: Denial) -> web.Response:
        return refusal(denial)
