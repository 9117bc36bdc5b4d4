"""Both stages as events in simulated time, with the engine's own policy objects."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from bench.first_come import FirstCome, FirstComeDecodes
from bench.simulated_speech import FRAME_S, Speech, Utterance

from inference.average import WorkTime
from inference.chunking import PIECE_FRAMES, Chunker, Pace
from inference.connector import Feedback
from inference.costs import Costs
from inference.decode_queue import Call, DecodeQueue
from inference.records import CodesChunk
from inference.scheduler import Scheduler

WIDTH = 4  # max_num_seqs
SLOTS = 128
HOP_S = 0.002  # from one process to the next
START_S = 6.0  # listeners come within so long


@dataclass(frozen=True)
class Machine:
    """Seconds of a step with so many rows, of a prefill of so many columns, of a decode of so many frames.

    `interference`: by how much a stage slows down while the other one is at work.  `jitter`: how much a time varies.
    """

    name: str
    step: Callable[[int], float]
    prefill: Callable[[int], float]
    decode: Callable[[int], float]
    interference: float = 0.0
    jitter: float = 0.1


class Simulation:
    """`listeners` on one machine.  `ours`: the engine's policy, else first come, first served."""

    def __init__(self, machine: Machine, listeners: int, ours: bool, seed: int = 0, within_s: float = START_S) -> None:
        self._machine, self._ours = machine, ours
        self._rng = random.Random(seed)
        self._numbers = itertools.count(1)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self.now = 0.0
        self.utterances: list[Utterance] = []
        self.capacities: list[float] = []
        self._scheduler: Scheduler[Speech] = Scheduler(WIDTH, SLOTS) if ours else FirstCome(WIDTH)
        self._decodes = DecodeQueue(FRAME_S, PIECE_FRAMES, 1, 2048, joined=25) if ours else FirstComeDecodes()
        self._frame_time = WorkTime()
        self._frame_time.add(machine.decode(PIECE_FRAMES), PIECE_FRAMES, busy=False)
        self._feedback = self._feed_back()
        self._costs = Costs(WIDTH, 1 / FRAME_S, 4, lambda: self._feedback)
        self._costs.stepped(machine.step(1), 1)  # the stages' warm-up
        self._costs.prefilled(60, machine.prefill(60))
        self._speeches: dict[int, Speech] = {}
        self._connector: deque[CodesChunk] = deque()
        self._ar_busy = self._codec_busy = False
        for _ in range(listeners):
            self._at(within_s * self._rng.random(), lambda: self._ask(self.now))

    def run(self, seconds: float) -> list[Utterance]:
        """All utterances that were asked for in so many seconds, the last ones unfinished."""
        while self._events and self._events[0][0] <= seconds:
            self.now, _, event = heapq.heappop(self._events)
            event()
        return self.utterances

    def _at(self, time: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._numbers), event))

    def _takes(self, seconds: float, other_busy: bool) -> float:
        slower = 1 + self._machine.interference * other_busy
        return seconds * slower * (1 + self._machine.jitter * abs(self._rng.gauss(0.0, 1.0)))

    # Listener and gateway ---------------------------------------------------------------------------------------------

    def _ask(self, now: float) -> None:
        segments = [self._rng.randint(25, 130) for _ in range(self._rng.randint(1, 3))]
        utterance = Utterance(next(self._numbers), segments if self._ours else [sum(segments)], now)
        self.utterances.append(utterance)
        self._submit(utterance, 0)

    def _submit(self, utterance: Utterance, index: int) -> None:
        dry_at = utterance.playback.dry_at(0.0, self.now)
        self._at(self.now + HOP_S, lambda: self._arrive(utterance, index, dry_at))

    def _deliver(self, speech: Speech, chunk: CodesChunk) -> None:
        utterance = speech.utterance
        utterance.hear(chunk.codes.shape[1] * FRAME_S, self.now)
        if chunk.last and speech.index == len(utterance.segments) - 1:
            self._at(utterance.end, lambda: self._ask(self.now))

    # Stage 0, as in ar_stage.py ---------------------------------------------------------------------------------------

    def _arrive(self, utterance: Utterance, index: int, dry_at: float | None) -> None:
        known = [at for at in (dry_at, self._scheduler.dry_at(utterance.listener, self.now)) if at is not None]
        chunker = Chunker("adaptive" if self._ours else "fixed", 4, 25, FRAME_S, max(known, default=None))
        columns = 20 + round(0.7 * utterance.segments[index])
        speech = Speech(next(self._numbers), utterance, index, columns, chunker)
        self._speeches[speech.stream_id] = speech
        self._scheduler.add(speech, self.now)
        self._turn()

    def _turn(self) -> None:
        """One turn of stage 0: admit at most one, run those whose turn it is."""
        if self._ar_busy:
            return
        capacity = self._costs.capacity()
        self.capacities.append(capacity)
        newcomer = self._scheduler.admit(
            self.now, self._costs.places(), lambda speech: self._costs.guard(speech.columns)
        )
        if newcomer is None:
            self._step()
            return
        pace = self._costs.pace(len(self._scheduler.running), self._costs.prefill_s(newcomer.columns))
        for speech in self._scheduler.running:
            self._send_due(speech, False, pace)
        self._at(self.now, lambda: self._decodes.open(newcomer.stream_id, newcomer.chunker.dry_at, None))
        seconds = self._takes(self._machine.prefill(newcomer.columns), self._codec_busy)
        self._ar_busy = True
        self._at(self.now + seconds, lambda: self._prefilled(newcomer, seconds))

    def _prefilled(self, newcomer: Speech, seconds: float) -> None:
        self._costs.prefilled(newcomer.columns, seconds)
        self._step()

    def _step(self) -> None:
        batch = self._scheduler.batch(self.now, self._costs.guard())
        self._ar_busy = bool(batch)
        if batch:
            seconds = self._takes(self._machine.step(len(batch)), self._codec_busy)
            self._at(self.now + seconds, lambda: self._stepped(batch, seconds))
        elif self._scheduler.waiting:
            self._at(self.now + 0.05, self._turn)  # a share may fall free with time alone

    def _stepped(self, batch: list[Speech], seconds: float) -> None:
        self._ar_busy = False
        pace = self._costs.pace(len(self._scheduler.running))
        for speech in batch:
            speech.made += 1
            self._send_due(speech, speech.made == speech.frames, pace)
            if speech.made == speech.frames:
                self._end(speech)
        self._costs.stepped(seconds, len(batch))
        self._turn()

    def _end(self, speech: Speech) -> None:
        self._costs.ended(speech.frames)
        self._scheduler.remove(speech, self.now)
        utterance = speech.utterance
        if speech.index + 1 < len(utterance.segments):
            self._at(self.now + HOP_S, lambda: self._submit(utterance, speech.index + 1))
        else:
            self._at(self.now + 2 * HOP_S, lambda: self._release(speech.listener))

    def _release(self, listener: int) -> None:
        self._scheduler.release(listener)
        self._turn()

    def _send_due(self, speech: Speech, ended: bool, pace: Pace) -> None:
        while True:
            frames = speech.chunker.due(speech.pending, ended, self.now, pace)
            last = ended and frames == speech.pending
            if frames or last:
                codes = np.zeros((1, frames), dtype=np.uint16)
                chunk = CodesChunk(speech.stream_id, speech.chunker.sent_frames, codes, last)
                speech.chunker.sent(frames, self.now, pace)
                self._at(self.now + HOP_S / 10, lambda chunk=chunk: self._take(chunk))
            if last or not frames:
                return

    # Stage 1, as in codec_stage.py ------------------------------------------------------------------------------------

    def _take(self, chunk: CodesChunk) -> None:
        self._connector.append(chunk)
        if not self._codec_busy:
            self._decode()

    def _decode(self) -> None:
        while self._connector:
            self._decodes.put(self._connector.popleft())
        call = self._decodes.next_call(self.now, self._frame_time.now)
        self._feedback = self._feed_back()
        if call is None:
            return
        self._codec_busy = True
        seconds = self._takes(self._machine.decode(call.frames), self._ar_busy) if call.frames else 0.0
        self._at(self.now + seconds, lambda: self._decoded(call, seconds))

    def _feed_back(self) -> Feedback:
        times, queue = self._frame_time, self._decodes
        return Feedback(times.now, times.busy, queue.ahead, queue.spare_s(self.now, times.now))

    def _decoded(self, call: Call, seconds: float) -> None:
        self._codec_busy = False
        if call.frames:
            self._frame_time.add(seconds, call.frames, busy=call.frames >= PIECE_FRAMES)
        for stream in call.streams:
            chunk = self._decodes.advance(stream, call.codes.shape[2], self.now)
            if chunk is None:
                continue
            speech = self._speeches[chunk.stream_id]
            self._at(self.now + HOP_S, lambda chunk=chunk, speech=speech: self._deliver(speech, chunk))
            if chunk.last:
                self._decodes.close(stream.stream_id)
                del self._speeches[stream.stream_id]
        self._decode()
