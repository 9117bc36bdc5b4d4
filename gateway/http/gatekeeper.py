"""Who may ask for speech, and whether there is room for another one."""

from __future__ import annotations

from http import HTTPStatus

from aiohttp import web

from gateway.http.origin import OriginPolicy
from gateway.http.refusals import Denial
from gateway.keys import offered_key
from gateway.service import Service
from protocol.codes import ErrorCode

SERVER_ENDS = "the server is shutting down"


class Gatekeeper:
    """Asked before a request is served; what it answers is told in the words of the API that was called."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._origins = OriginPolicy(service.settings.allowed_origins, service.settings.allowed_hosts)

    def owner(self, request: web.Request) -> str | None:
        """The name of the key that the request carries, None if it carries none of ours."""
        return self.owner_of(offered_key(request.headers, request.query))

    def owner_of(self, key: str | None) -> str | None:
        """The name of a key, None if it is none of ours."""
        return self._service.settings.keys.owner(key) if self._service.settings.keys is not None else None

    def denial(self, request: web.Request) -> Denial | None:
        """Why whoever asks may have nothing but pages and health: a foreign page, no key; None if it may."""
        return self.foreign(request) or self.unknown(self.owner(request))

    def foreign(self, request: web.Request) -> Denial | None:
        """It comes from a page, or for a host, that is not allowed."""
        local = request.transport.get_extra_info("sockname") if request.transport else None
        why = self._origins.refusal(request.headers.get("Origin"), request.host, local[0] if local else "")
        return None if why is None else Denial(HTTPStatus.FORBIDDEN, ErrorCode.FORBIDDEN_ORIGIN, why)

    def unknown(self, owner: str | None) -> Denial | None:
        """A key is needed, and it has none of ours."""
        if self._service.settings.keys is None or owner is not None:
            return None
        headers = {"WWW-Authenticate": "Bearer"}
        return Denial(HTTPStatus.UNAUTHORIZED, ErrorCode.UNAUTHORIZED, "a valid API key is needed", headers=headers)

    def no_room(self, owner: str | None) -> Denial | None:
        """Why nobody, or not this owner of a key, can be served just now."""
        service, limits = self._service, self._service.settings.limits
        if service.admission.is_over:
            return self._later(ErrorCode.SHUTTING_DOWN, SERVER_ENDS)
        if not service.engine.ready:
            return self._later(ErrorCode.OVERLOADED, "the model is being loaded")
        if service.admission.is_full:
            message = f"{limits.connections} connections are open, which is the limit"
            return self._later(ErrorCode.OVERLOADED, message)
        if service.admission.share(owner).is_full:
            message = f"{limits.key_connections} connections are open with this API key, which is the limit"
            return self._later(ErrorCode.RATE_LIMITED, message, HTTPStatus.TOO_MANY_REQUESTS)
        return None

    def busy(self, message: str, code: ErrorCode = ErrorCode.OVERLOADED) -> Denial:
        """It cannot be done now, and may be soon."""
        return self._later(code, message)

    def _later(self, code: ErrorCode, message: str, status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE) -> Denial:
        return Denial(status, code, message, max(1, self._service.settings.retry_after_ms // 1000))
