"""The rival: first come, first served, as the published deployment does it."""

from __future__ import annotations

from collections.abc import Callable

from bench.simulated_speech import FRAME_S, Speech

from inference.decode_queue import Call, CodecStream, DecodeQueue
from inference.records import CodesChunk
from inference.scheduler import Guard, Scheduler


class FirstCome(Scheduler[Speech]):
    """The published behaviour: as many streams as a step is wide, each to its end."""

    def __init__(self, width: int) -> None:
        super().__init__(width, width)
        self._places = width

    def admit(self, now: float, capacity: float, guard: Callable[[Speech], Guard]) -> Speech | None:
        if not self.waiting or len(self.running) >= self._places:
            return None
        self.running.append(self.waiting.popleft())
        return self.running[-1]

    def batch(self, now: float, guard: Guard) -> list[Speech]:
        return list(self.running)

    def idle(self, now: float, capacity: float) -> bool:
        return not self.running and not self.waiting


class FirstComeDecodes(DecodeQueue):
    """Whole chunks, in order of arrival."""

    def __init__(self) -> None:
        super().__init__(FRAME_S, 2048, 1, 2048)
        self._order: list[CodecStream] = []

    def put(self, chunk: CodesChunk) -> None:
        super().put(chunk)
        self._order.append(self.get(chunk.stream_id))

    def next_call(self, now: float, seconds_per_frame: float) -> Call | None:
        if not self._order:
            return None
        stream = self._order.pop(0)
        return Call([stream], stream.chunks[0].codes[None])
