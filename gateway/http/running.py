"""All that speaks at the moment, WebSockets and HTTP requests alike: how many there are, and how they end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol, TypeVar

from gateway.admission import Share
from gateway.http.gatekeeper import SERVER_ENDS
from gateway.service import Service

log = logging.getLogger(__name__)

T = TypeVar("T", covariant=True)


class Served(Protocol[T]):
    """One client that is served."""

    @property
    def unsent_audio_s(self) -> float:
        """Audio that waits to be sent."""

    def context_states(self) -> Iterable[str]:
        """Of each open context the state that `session.progress` would tell."""

    async def run(self) -> T:
        """Until it is over.  Frees all that it holds, whatever the cause."""

    def wind_down(self, message: str) -> None:
        """The server is about to end: what is open may end first."""

    def shut_down(self, message: str) -> None:
        """The server ends."""

    def abort(self) -> None:
        """Waits for nothing: the connection goes, and with it all else."""


class Running:
    """`wind_down`, then `shut_down`, end all of them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._served: set[Served] = set()
        self._all_over = asyncio.Event()
        self._all_over.set()

    @property
    def all(self) -> tuple[Served, ...]:
        """Those that are open."""
        return tuple(self._served)

    async def serve(self, served: Served[T], share: Share) -> T:
        """Run it to its end, counted as one connection, of the server and of the owner of `share`."""
        admission = self._service.admission
        admission.connections += 1
        share.connections += 1
        self._service.metrics.connection_opened()
        self._served.add(served)
        self._all_over.clear()
        if admission.is_over:  # since it was let in
            served.wind_down(SERVER_ENDS)
        try:
            return await served.run()
        finally:
            admission.connections -= 1
            share.connections -= 1
            self._served.discard(served)
            if not self._served:
                self._all_over.set()

    async def wind_down(self, grace_s: float) -> None:
        """Nothing new begins, and what has begun may end; returns when all is over, at the latest after `grace_s`."""
        self._service.admission.is_over = True
        for served in self._served:
            served.wind_down(SERVER_ENDS)
        await self._all_over_within(grace_s)

    async def shut_down(self) -> None:
        """End all; returns when they are over.  One that does not end in time is cut off."""
        self._service.admission.is_over = True
        for served in self._served:
            served.shut_down(SERVER_ENDS)
        if not await self._all_over_within(self._service.settings.close_s):
            log.warning("connections that do not end: %d", len(self._served))
            for served in self._served:
                served.abort()

    async def _all_over_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._all_over.wait()
        except TimeoutError:
            return False
        return True
