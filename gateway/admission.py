"""How much the server takes on: connections and contexts, of all and of each API key, and contexts that wait."""

from __future__ import annotations

import math

from gateway.engine.stream import EngineStream
from gateway.errors import Overloaded
from protocol.limits import Limits


class Share:
    """What the owner of one API key has open, and may have."""

    def __init__(self, most_connections: float, most_contexts: float) -> None:
        self._most_connections, self._most_contexts = most_connections, most_contexts
        self.connections = 0
        self.contexts = 0

    @property
    def is_full(self) -> bool:
        """No further connection can be accepted."""
        return self.connections >= self._most_connections

    def open_context(self) -> bool:
        """Count one more -> whether it is within the limit; `close_context` follows either way."""
        self.contexts += 1
        return self.contexts <= self._most_contexts

    def close_context(self) -> None:
        """A context has ended."""
        self.contexts -= 1


class Admission:
    """Counts for the whole server."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._shares: dict[str, Share] = {}  # by the names of keys, of which there are as many as there are
        self._everyone = Share(math.inf, math.inf)  # where no keys are needed: nobody can be told from another
        self._queue: list[EngineStream] = []  # first streams of contexts, oldest first
        self.connections = 0
        self.is_over = False  # the server ends and takes on nothing more

    @property
    def is_full(self) -> bool:
        """No further connection can be accepted."""
        return self.connections >= self._limits.connections

    def share(self, owner: str | None) -> Share:
        """That of a key's owner; None: there are no keys, and no limit but the server's."""
        if owner is None:
            return self._everyone
        if owner not in self._shares:
            self._shares[owner] = Share(self._limits.key_connections, self._limits.key_contexts)
        return self._shares[owner]

    @property
    def waiting(self) -> int:
        """Contexts whose first stream has not been started."""
        self._queue = [stream for stream in self._queue if stream.started is None]
        return len(self._queue)

    def check_queue(self) -> None:
        """Raises Overloaded if no further context may wait."""
        most = self._limits.waiting_contexts
        if self.waiting >= most:
            raise Overloaded(f"{most} contexts wait to be spoken, which is the limit of this server")

    def join_queue(self, stream: EngineStream) -> None:
        """The first stream of a context waits to be started."""
        self._queue.append(stream)

    def leave_queue(self, stream: EngineStream) -> None:
        """The stream waits no more, whatever became of it."""
        if stream in self._queue:
            self._queue.remove(stream)

    def position(self, stream: EngineStream) -> int | None:
        """How many contexts wait before this one's stream; None if it does not wait."""
        return self._queue.index(stream) if self.waiting and stream in self._queue else None
