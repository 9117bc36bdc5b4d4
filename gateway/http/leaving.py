"""A client that leaves while its request is served: the HTTP library notices it, and tells the handler nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web


class _Watch(asyncio.Protocol):
    """Stands between the transport and the library's protocol, and passes all on."""

    def __init__(self, inner: asyncio.Protocol, left: asyncio.Event) -> None:
        self.inner, self._left = inner, left

    def data_received(self, data: bytes) -> None:
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self.inner.eof_received()

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._left.set()
        self.inner.connection_lost(error)


@contextmanager
def leaving(request: web.Request) -> Iterator[asyncio.Event]:
    """`with leaving(request) as left`: set when its connection is lost."""
    left, transport = asyncio.Event(), request.transport
    if transport is None:
        left.set()
        yield left
        return
    transport.set_protocol(_Watch(request.protocol, left))
    try:
        yield left
    finally:
        transport.set_protocol(request.protocol)
