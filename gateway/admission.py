"""How much the server takes on: connections, and contexts that wait for their first step."""

from __future__ import annotations

from gateway.engine import EngineStream
from gateway.errors import Overloaded


class Admission:
    """Counts for the whole server."""

    def __init__(self, connections: int, waiting_contexts: int) -> None:
        self._most_connections, self._most_waiting = connections, waiting_contexts
        self.connections = 0
        self._queue: list[EngineStream] = []  # first streams of contexts, oldest first

    @property
    def is_full(self) -> bool:
        """No further connection can be accepted."""
        return self.connections >= self._most_connections

    @property
    def waiting(self) -> int:
        """Contexts whose first stream has not been started."""
        self._queue = [stream for stream in self._queue if stream.started is None]
        return len(self._queue)

    def check_queue(self) -> None:
        """Raises Overloaded if no further context may wait."""
        if self.waiting >= self._most_waiting:
            raise Overloaded(f"{self._most_waiting} contexts wait to be spoken, which is the limit of this server")

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
