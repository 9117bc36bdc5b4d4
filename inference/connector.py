"""SharedMemoryConnector: carries records from stage 0 to stage 1 without locks and without a name on disk."""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import tempfile
from dataclasses import dataclass
from math import inf
from typing import BinaryIO, NamedTuple

from inference.records import Record, decode, encode
from inference.ring import HEADER, Ring

DEFAULT_CAPACITY = 1 << 20  # bytes; about 1,900 chunks of 25 frames with 10 codebooks
_SHARED_MEMORY = "/dev/shm"
_SECONDS_WORD, _BUSY_WORD, _AHEAD_WORD, _SPARE_WORD = range(4)


class ConnectorFds(NamedTuple):
    """File descriptors by which another process attaches: hand them to `subprocess.Popen(pass_fds=…)`."""

    memory: int
    wake_read: int
    wake_write: int


@dataclass(frozen=True, slots=True)
class Feedback:
    """What stage 1 lets stage 0 know.

    `seconds_per_frame`: of a decode, of late, and `busy_seconds_per_frame`: when there is much to decode; 0 before the
    first.  `ahead_frames`: decoded before those of one more stream, even if that is in a hurry.  `spare_s`: for how
    long it could do something else without anybody running dry.
    """

    seconds_per_frame: float = 0.0
    busy_seconds_per_frame: float = 0.0
    ahead_frames: int = 0
    spare_s: float = inf


class SharedMemoryConnector:
    """A ring of records between one producer and one consumer, with a wake-up pipe.

    The gateway creates it and keeps it; the workers attach by the inherited file descriptors.  The memory is a file
    without a name, so nothing is left behind however the processes end.  The positions live in the ring: a side that
    was killed and started anew goes on where it was.  A new producer puts `ProducerStarted` first, a new consumer calls
    `reset` first, as it holds no stream of those whose chunks are unread.  A side must have died before its successor
    attaches.

    One object serves one thread as producer and one as consumer.
    """

    def __init__(self, memory: int, wake_read: int, wake_write: int, sleep_s: float) -> None:
        """Use `create` or `attach`.  Owns the file descriptors."""
        self.fds = ConnectorFds(memory, wake_read, wake_write)
        self._sleep_s = sleep_s
        self._map = mmap.mmap(memory, 0)
        self._view = memoryview(self._map)
        self._ring = Ring(self._view)
        self._poll = select.poll()
        self._poll.register(wake_read, select.POLLIN)
        self._closed = False

    @classmethod
    def create(cls, sleep_s: float, capacity: int = DEFAULT_CAPACITY) -> SharedMemoryConnector:
        """A new, empty ring of `capacity` bytes (a multiple of 8).  `sleep_s`: connector_get_sleep_s."""
        with _nameless_file() as file:
            file.write(bytes(HEADER + capacity))  # written, not only sized: lack of memory is an error here, no SIGBUS
            file.flush()
            memory = os.dup(file.fileno())
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        connector = cls(memory, wake_read, wake_write, sleep_s)
        connector.publish(Feedback())
        return connector

    @classmethod
    def attach(cls, fds: tuple[int, int, int], sleep_s: float) -> SharedMemoryConnector:
        """The same ring, by the `fds` of the one who created it, which stay open and the caller's."""
        return cls(*map(os.dup, fds), sleep_s)

    def put(self, record: Record) -> bool:
        """Append a record and wake the consumer; False, and nothing has happened, if the ring is full.  Never blocks.

        ValueError if the record is malformed or larger than the whole ring.
        """
        if not self._ring.write(encode(record)):
            return False
        with contextlib.suppress(BlockingIOError):  # the pipe is full of wake-ups: one more would say nothing new
            os.write(self.fds.wake_write, b"\0")
        return True

    def get(self) -> Record | None:
        """The oldest record, or None.  Never blocks.  Call it until None before waiting: None clears the wake-ups."""
        data = self._ring.read()
        if data is None and self._clear_wakeups():
            data = self._ring.read()  # what came between the first look and the clearing
        return None if data is None else decode(data)

    def fileno(self) -> int:
        """Readable when records may have come, for `select` and event loops.  Look every `sleep_s` nevertheless."""
        return self.fds.wake_read

    def wait(self, timeout_s: float | None = None) -> bool:
        """Sleep until a wake-up, at most `timeout_s` and never longer than `sleep_s`.  Whether a wake-up came."""
        longest = self._sleep_s if timeout_s is None else max(0.0, min(timeout_s, self._sleep_s))
        return bool(self._poll.poll(longest * 1000))

    def reset(self) -> None:
        """The consumer drops all unread records and its feedback; safe while the producer runs."""
        self._ring.discard()
        self.publish(Feedback())

    def publish(self, feedback: Feedback) -> None:
        """The consumer shows how it is doing."""
        self._ring.publish(_SECONDS_WORD, feedback.seconds_per_frame)
        self._ring.publish(_BUSY_WORD, feedback.busy_seconds_per_frame)
        self._ring.publish(_AHEAD_WORD, feedback.ahead_frames)
        self._ring.publish(_SPARE_WORD, feedback.spare_s)

    @property
    def feedback(self) -> Feedback:
        """What the consumer has shown last.  The numbers are read one after the other and may be of two moments."""
        seconds, busy, ahead, spare = map(self._ring.published, (_SECONDS_WORD, _BUSY_WORD, _AHEAD_WORD, _SPARE_WORD))
        return Feedback(seconds, busy, int(ahead), spare)

    def close(self) -> None:
        """Unmap the memory and close this object's file descriptors.  Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._ring.close()
        self._view.release()
        self._map.close()
        for fd in self.fds:
            os.close(fd)

    def _clear_wakeups(self) -> bool:
        try:
            return bool(os.read(self.fds.wake_read, 1 << 16))
        except BlockingIOError:
            return False


def _nameless_file() -> BinaryIO:
    """An open file that no path leads to, in memory where the system has a place for that."""
    in_memory = os.path.isdir(_SHARED_MEMORY) and os.access(_SHARED_MEMORY, os.W_OK)
    return tempfile.TemporaryFile(dir=_SHARED_MEMORY if in_memory else None)
