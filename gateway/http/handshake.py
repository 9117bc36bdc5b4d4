"""Connections that never send a whole request: they would hold a socket for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HandshakeGuard:
    """Closes connections that have brought no request within `limit_s`; `middleware` has to see every request."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._waiting_since: dict[web.RequestHandler, float] = {}
        self._served: set[web.RequestHandler] = set()
        self.middleware = self._make_middleware()

    async def watch(self, connections: Callable[[], Iterable[web.RequestHandler]]) -> None:
        """Look at what the HTTP server holds, four times within the limit, for ever."""
        clock = asyncio.get_running_loop().time
        while True:
            self.sweep(connections(), clock())
            await asyncio.sleep(self._limit_s / 4)

    def sweep(self, connections: Iterable[web.RequestHandler], now: float) -> None:
        """Close what is overdue at time `now`, forget what is gone."""
        held = set(connections)
        self._served &= held
        self._waiting_since = {each: self._waiting_since.get(each, now) for each in held - self._served}
        for connection, since in self._waiting_since.items():
            if now - since >= self._limit_s:
                connection.force_close()

    def _make_middleware(self) -> Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]:
        @web.middleware
        async def note(request: web.Request, handler: Handler) -> web.StreamResponse:
            self._served.add(request.protocol)
            return await handler(request)

        return note
