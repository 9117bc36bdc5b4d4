"""What makes the voices of a connection's contexts: an uploaded voice, or the recording that the session brought."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from gateway.errors import BadReference, ClientError, client_error
from gateway.service import Service
from inference.messages import Reference
from protocol.config import SessionConfig
from protocol.reference import GivenReference


class SessionVoice:
    """A recording is encoded while the connection goes on; who needs it waits for it."""

    def __init__(self, service: Service, tasks: asyncio.TaskGroup, refuse: Callable[[ClientError], None]) -> None:
        """`tasks`: of the connection; `refuse` tells the client that its recording cannot be used."""
        self._service, self._tasks, self._refuse = service, tasks, refuse
        self._latest: asyncio.Task[Reference | ClientError] | None = None

    def take(self, given: GivenReference) -> None:
        """The recording of all contexts that open from now on."""
        self._latest = self._tasks.create_task(self._encode(given), name="reference")

    def of(self, config: SessionConfig) -> Callable[[], Awaitable[Reference | None]]:
        """What makes the voice of a context that opens now; it raises BadReference.  None: a voice that the model knows
        by name, or no voice."""
        recording, uploaded = self._latest, self._service.voices.reference(config.voice)

        async def reference() -> Reference | None:
            if config.ref_audio is None:
                return uploaded
            made = await asyncio.shield(recording)
            if isinstance(made, ClientError):
                raise BadReference(made)
            return made

        return reference

    async def _encode(self, given: GivenReference) -> Reference | ClientError:
        """An error is told at once, and later by each context that is to be spoken in that voice."""
        try:
            return await self._service.coder.reference(given.audio, given.text)
        except Exception as exception:
            error = client_error(exception)
        if self._latest is asyncio.current_task():
            self._refuse(error)
        return error
