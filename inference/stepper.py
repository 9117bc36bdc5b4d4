"""Steps that are read at once, or one behind (`async_scheduling`), and the KV slots that they use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inference.ar_stream import Stream
from inference.runner import ARRunner
from inference.sequence import StepResult


@dataclass(frozen=True, slots=True, eq=False)
class Flight:
    """A step that was launched and not read, or what its launch raised."""

    streams: list[Stream]
    result: StepResult | Exception


@dataclass(frozen=True, slots=True, eq=False)
class Landing:
    """A step that was read: each stream's frame uint16 [Q], and whether it found its end instead.

    `error`: what the step raised; there are no frames then.
    """

    streams: list[Stream]
    frames: list[np.ndarray]
    ended: list[bool]
    error: Exception | None = None


class Stepper:
    """Launches steps and reads them in order.  Owns the free slots: one is free when no launched step uses it.

    One behind, a stream whose end nobody has read is launched once more; whoever reads the landing leaves it out.
    """

    def __init__(self, runner: ARRunner, one_behind: bool):
        """`one_behind`: step n + 1 is launched before step n is read."""
        self._runner, self._one_behind = runner, one_behind
        self._free = list(range(runner.slots))
        self._released: set[int] = set()  # but a launched step uses them
        self._flight: Flight | None = None

    @property
    def flying(self) -> bool:
        """Whether a step is to be read."""
        return self._flight is not None

    @property
    def unused(self) -> int:
        """Slots that no stream holds."""
        return len(self._free) + len(self._released)

    @property
    def has_free(self) -> bool:
        """Whether `take` may be called."""
        return bool(self._free)

    def take(self) -> int:
        """A free slot."""
        return self._free.pop()

    def release(self, slot: int) -> None:
        """The slot's stream has ended."""
        if self._flight is not None and any(stream.slot == slot for stream in self._flight.streams):
            self._released.add(slot)
        else:
            self._free.append(slot)

    def step(self, batch: list[Stream]) -> Landing | None:
        """Launch a step of those of the streams that may have more frames, and read one, if there is one to read."""
        batch = [stream for stream in batch if self._runner.room(stream.sequence)]
        launched = self._launch(batch) if batch else None
        if not self._one_behind:
            return _read(launched) if launched else None
        flight, self._flight = self._flight, launched
        if flight is None:
            return None
        landing = _read(flight)
        used = {stream.slot for stream in launched.streams} if launched else set()
        self._free += self._released - used
        self._released &= used
        return landing

    def _launch(self, streams: list[Stream]) -> Flight:
        try:
            return Flight(streams, self._runner.launch([stream.sequence for stream in streams]))
        except Exception as error:  # whatever it is, it ends these streams, and no others
            return Flight(streams, error)


def _read(flight: Flight) -> Landing:
    try:
        if isinstance(flight.result, Exception):
            raise flight.result
        frames, ended = flight.result.read()
    except Exception as error:  # as above
        return Landing(flight.streams, [], [], error)
    return Landing(flight.streams, frames, ended)
