"""Stage 0: texts in, codes out.  Its `step` reads as the engine works: admit, run, hand over."""

from __future__ import annotations

import logging
import time
from collections import deque

import numpy as np

from inference.ar_layout import lay_out_runner
from inference.ar_stream import Stream
from inference.channel import StageChannel
from inference.checkpoint import Checkpoint
from inference.chunking import Chunker, Pace
from inference.codes_outbox import CodesOutbox
from inference.connector import SharedMemoryConnector
from inference.costs import Costs
from inference.deploy import DeployConfig
from inference.device import check_usable
from inference.ends import EndGuard
from inference.heart import Heart
from inference.messages import Cancel, Credit, Failed, Finished, Keep, Reference, Release, Sampling, Started, Submit
from inference.prefill import Prefiller
from inference.report import ARCounts
from inference.scheduler import Guard, Scheduler
from inference.stepper import Landing, Stepper

log = logging.getLogger("audio8.stage0")

_IDLE_S = 0.5  # longest sleep without work; shorter than the promise of a beat
_QUEUED_S = 0.05  # the same while someone waits for a share: one falls free with time alone
_HELD_BACK_S = 0.5  # a stream without a step for so long is told to stage 1 as paused, so that it does not time out


class ARStage:
    """Owns the model, its KV slots and the streams in them.  One thread."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        deploy: DeployConfig,
        channel: StageChannel,
        connector: SharedMemoryConnector,
        device: str,
    ):
        """Reads the weights, lays out the slots, keeps the voices' prefixes, runs once.  Raises what loading raises."""
        self._deploy, self._channel = deploy, channel
        self._runner, kept = lay_out_runner(checkpoint, deploy, device)
        self._prefiller = Prefiller(checkpoint, self._runner, kept if deploy.ar.enable_prefix_caching else 0)
        self._steps = Stepper(self._runner, one_behind=deploy.ar.async_scheduling)
        self._scheduler: Scheduler[Stream] = Scheduler(deploy.ar.max_num_seqs, self._runner.slots)
        self._streams: dict[int, Stream] = {}
        self._voices: deque[Reference] = deque()  # to be kept when there is nothing else to do
        self._outbox = CodesOutbox(connector, deploy.connector.chunk_wait_s)
        self._heart = Heart(0, deploy.connector.chunk_wait_s, channel.send)
        self._frame_s = 1 / checkpoint.config.frame_rate
        self._costs = Costs(
            deploy.ar.max_num_seqs,
            checkpoint.config.frame_rate,
            deploy.connector.initial_chunk_frames,
            lambda: connector.feedback,
        )
        self._counts = ARCounts(self._runner.slots)
        self._warm_up()

    def run(self) -> None:
        """Serve until the gateway closes the channel (ChannelClosed)."""
        while True:
            self._report()
            self._heart.beat()
            self._sleep()
            for message in self._channel.receive():
                self._handle(message)
            self._outbox.flush()
            if not self._outbox.is_blocked:  # a full connector holds everything back: nothing is dropped
                self.step()

    def step(self) -> None:
        """Admit at most one stream, make one frame for those whose turn it is, hand over the chunks that are due."""
        if self._has_leisure:
            self._keep(self._voices.popleft())
        if self._steps.has_free:
            newcomer = self._scheduler.admit(time.monotonic(), self._costs.places(), self._guard)
            if newcomer is not None:
                self._start(newcomer)
        begin = time.monotonic()
        self._counts.look(begin, self._scheduler.running, self._scheduler.waiting)
        batch = self._scheduler.batch(begin, self._costs.guard())
        if landing := self._run(batch):
            self._land(landing, time.monotonic())
            if batch and landing.error is None:
                self._costs.stepped(time.monotonic() - begin, len(landing.streams))

    def _sleep(self) -> None:
        """Until there is something to do, or for a while."""
        if self._outbox.is_blocked:
            self._channel.wait(self._deploy.connector.get_sleep_s)
        elif self._has_leisure:
            return
        elif not self._steps.flying and self._scheduler.idle(time.monotonic(), self._costs.places()):
            self._channel.wait(_QUEUED_S if self._scheduler.waiting else _IDLE_S)

    @property
    def _has_leisure(self) -> bool:
        """There is a voice to be kept, and nothing else to do."""
        return bool(self._voices) and not self._streams and not self._steps.flying

    def _keep(self, reference: Reference) -> None:
        """Compute what a voice's prompts begin with: its first listener waits no longer than later ones."""
        self._heart.long_work(self._deploy.connector.first_chunk_wait_s)
        slot = self._steps.take()
        try:
            self._prefiller.keep(slot, reference)
        except Exception as error:
            log.exception("a voice could not be kept")
            check_usable(error)
        finally:
            self._steps.release(slot)

    def _handle(self, message: object) -> None:
        match message:
            case Submit():
                self._add(message)
            case Keep(reference=reference):
                self._voices.append(reference)
            case Release(listener=listener):
                self._scheduler.release(listener)
            case Cancel(stream_id=stream_id) if stream := self._streams.get(stream_id):
                self._abort(stream)
            case Credit(stream_id=stream_id, granted=granted) if stream := self._streams.get(stream_id):
                stream.credit = granted
                if not granted:
                    self._outbox.pause(stream)

    def _add(self, request: Submit) -> None:
        connector, now = self._deploy.connector, time.monotonic()
        try:
            prompt = self._prefiller.prompt(request)
        except Exception as error:
            log.exception("stream %d: no prompt", request.stream_id)
            message = f"the segment could not be started: {error}"
            self._channel.send(Failed(request.stream_id, "engine_failed", message))
            return
        chunker = Chunker(
            connector.chunk_policy,
            request.initial_chunk_frames or connector.initial_chunk_frames,
            request.chunk_frames or connector.chunk_frames,
            self._frame_s,
            self._dry_at(request, now),
        )
        guard = None if self._deploy.ignore_eos else EndGuard(request.text, 1 / self._frame_s)
        stream = Stream(request, chunker, now, self._frame_s, prompt, guard)
        self._streams[request.stream_id] = stream
        self._scheduler.add(stream, now)

    def _dry_at(self, request: Submit, now: float) -> float | None:
        """When the listener is dry: the gateway knows what others say before, we what is on its way."""
        known = [at for at in (request.dry_at, self._scheduler.dry_at(request.listener, now)) if at is not None]
        return max(known, default=None)

    def _start(self, stream: Stream) -> None:
        """Prefill into a free slot."""
        request, columns = stream.request, self._columns(stream)
        self._send_before(self._costs.prefill_s(columns))
        begin = time.monotonic()
        self._heart.long_work(self._deploy.connector.first_chunk_wait_s)
        slot = stream.slot = self._steps.take()
        stream.ran_at = begin
        if self._deploy.connector.chunk_policy != "whole":  # one chunk at the end: there is nothing to wait for before
            self._outbox.open(stream)
        try:
            stream.sequence = self._prefiller.sequence(slot, request, stream.prompt)
        except Exception as error:
            log.exception("stream %d: prefill failed", request.stream_id)
            check_usable(error)
            self._fail(stream, f"the segment could not be started: {error}")
            return
        seconds = time.monotonic() - begin
        self._costs.prefilled(columns, seconds)
        self._counts.prefilled(seconds)
        self._channel.send(Started(request.stream_id, stream.prompt.text_tokens, begin - stream.arrived))

    def _send_before(self, prefill_s: float) -> None:
        """For so long there will be no step: hand over what is due until then."""
        now, pace = time.monotonic(), self._pace(prefill_s)
        for stream in self._scheduler.running:
            if stream.sequence is not None:
                self._outbox.send_due(stream, False, now, pace)

    def _columns(self, stream: Stream) -> int:
        return self._prefiller.columns(stream.request, stream.prompt)

    def _run(self, batch: list[Stream]) -> Landing | None:
        """Launch a step and read one: the same, or the one before."""
        self._heart.beat(self._costs.step_s)
        begin = time.monotonic()
        landing = self._steps.step(batch)
        if landing is not None and landing.error is None:
            self._counts.stepped(time.monotonic() - begin, len(landing.streams))
        return landing

    def _land(self, landing: Landing, now: float) -> None:
        """Streams have run; those that have ended meanwhile are left out."""
        alive = [stream for stream in landing.streams if stream.request.stream_id in self._streams]
        if landing.error is not None:
            log.error("a step failed; its %d streams end", len(alive), exc_info=landing.error)
            check_usable(landing.error)
            for stream in alive:
                self._fail(stream, f"the model failed: {landing.error}")
            return
        for stream, frame, end in zip(landing.streams, landing.frames, landing.ended, strict=True):
            if stream in alive:
                self._advance(stream, None if end else frame, now)
        self._tell_held_back(now)

    def _advance(self, stream: Stream, frame: np.ndarray | None, now: float) -> None:
        """A stream has run: send what is due, end it if it is over.  `frame`: None if it found its end."""
        self._outbox.ran(stream, now)
        sequence = stream.sequence
        if frame is not None:
            sequence.frames.append(frame)
            self._counts.made_frame()
        full = frame is not None and (
            self._runs_away(stream) or (sequence.step == len(sequence.frames) and not self._runner.room(sequence))
        )
        self._outbox.send_due(stream, frame is None or full, now, self._pace())
        if frame is None or full:
            self._costs.ended(len(sequence.frames))
            codes = stream.codes(0, len(sequence.frames))
            reason = "max_length" if full else "done"
            self._end(stream)
            self._channel.send(Finished(stream.request.stream_id, reason, codes))

    def _runs_away(self, stream: Stream) -> bool:
        """Whether the newest frame shows that the stream does not find its end.  What is not worth hearing and has not
        left yet is dropped."""
        frames = stream.sequence.frames
        kept = stream.guard.add(int(frames[-1][0])) if stream.guard else None
        if kept is None:
            return False
        made = len(frames)
        del frames[max(kept, stream.chunker.sent_frames) :]
        log.warning(
            "stream %d found no end in %d frames and is stopped, without its last %d",
            stream.request.stream_id,
            made,
            made - len(frames),
        )
        return True

    def _pace(self, pause_s: float = 0.0) -> Pace:
        return self._costs.pace(len(self._scheduler.running), pause_s)

    def _guard(self, newcomer: Stream) -> Guard:
        """Who has less is served before the newcomer is prefilled."""
        return self._costs.guard(self._columns(newcomer))

    def _tell_held_back(self, now: float) -> None:
        for stream in self._scheduler.running:
            if now - stream.ran_at > _HELD_BACK_S:
                self._outbox.pause(stream)

    def _fail(self, stream: Stream, message: str) -> None:
        self._abort(stream)
        self._channel.send(Failed(stream.request.stream_id, "engine_failed", message))

    def _abort(self, stream: Stream) -> None:
        """End it before it has brought all its codes."""
        self._end(stream)
        self._outbox.abort(stream)

    def _end(self, stream: Stream) -> None:
        """Whatever ends a stream comes through here: its slot is free again."""
        del self._streams[stream.request.stream_id]
        self._scheduler.remove(stream, time.monotonic())
        if stream.slot is not None:
            self._steps.release(stream.slot)
        if not self._streams:
            self._check_integrity()

    def _check_integrity(self) -> None:
        """With no stream left, nothing is held."""
        if self._steps.unused != self._runner.slots or self._scheduler.running or self._scheduler.waiting:
            raise RuntimeError(f"idle, but only {self._steps.unused} of {self._runner.slots} KV slots are free")

    def _report(self) -> None:
        """Tell the gateway what was done, if it is time."""
        now, queue = time.monotonic(), self._scheduler
        listeners = queue.listeners(now)
        if self._counts.due(now, busy=bool(self._streams or listeners)):
            self._channel.send(self._counts.take(queue.running, queue.waiting, listeners, self._costs.capacity()))

    def _warm_up(self) -> None:
        """Speak a little, so that the first user does not pay for first calls; keep the voices' prefixes."""
        slot = self._steps.take()
        if self._deploy.ar.enable_prefix_caching:
            self._prefiller.keep_prefixes(slot)
        request = Submit(0, "Ready.", Sampling(max_new_tokens=1), listener=0)
        prompt = self._prefiller.prompt(request)
        begin = time.monotonic()
        sequence = self._prefiller.sequence(slot, request, prompt)
        self._costs.prefilled(self._prefiller.columns(request, prompt), time.monotonic() - begin)
        for _ in range(3):
            begin = time.monotonic()
            self._runner.step([sequence])
        self._costs.stepped(time.monotonic() - begin, 1)
        self._steps.release(slot)
