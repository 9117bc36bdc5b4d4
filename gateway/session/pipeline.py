"""One context from text to audio: text is cut into segments, segments are spoken in order, audio goes to the outbox.

Two tasks: `feed` submits the next segment as soon as stage 0 has made the last frame of the one before, the delivery
carries the audio of one stream after the other.  So stage 0 never waits for audio to be sent.  The contexts of one
connection are heard one after the other, so they are generated in that order too: whoever listens has one share of the
engine, however many contexts are open.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from gateway.admission import Admission
from gateway.engine.engine import Engine
from gateway.session.delivery import Delivery
from gateway.session.utterance import Item, Mark, Speech, Tally
from gateway.text.segmenter import Segment, Segmenter
from inference.messages import Reference, Sampling, Submit
from protocol.config import SessionConfig
from protocol.record import SECONDS_PER_CHARACTER

_LARGEST_REFERENCE = 4  # at most this part of the positions: texts of many bytes and the speech itself need the rest


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a pipeline needs of its connection: functions are called in the event loop and never block.

    `reference`: what makes the context's voice, if that is none of the model's own; it may still be in the making.
    `earlier`: set when all is generated of the contexts that come before on the same connection.
    `repetition_penalty`: the deploy file's, which no client changes.
    """

    engine: Engine
    admission: Admission
    clock: Callable[[], float]
    put: Callable[[Item], None]
    text_taken: Callable[[int], None]
    dry_at: Callable[[], float | None]
    reference: Callable[[], Awaitable[Reference | None]]
    earlier: Sequence[asyncio.Event]
    repetition_penalty: float


class ContextPipeline:
    """`language`: by whose rules the text is cut and its numbers are read, if known; `seed` is never None."""

    def __init__(self, config: SessionConfig, language: str | None, seed: int, around: Surroundings) -> None:
        self._config, self._seed, self._around = config, seed, around
        self._listener = around.engine.next_listener()
        self.tally = Tally(config.rate)
        self.generated = asyncio.Event()  # all of it, or nothing more is wanted
        delay = config.max_buffer_delay_ms
        self._segmenter = Segmenter(
            config.split_granularity,
            max_buffer_delay_s=None if delay is None else delay / 1000,
            first_needs_sentence=config.voice is None and config.ref_audio is None,
            language=language,
            preparation=config.text_preparation,
        )
        self._work: deque[Segment | Mark] = deque()
        self._tasks: list[asyncio.Task[None]] = []
        self._arrived = asyncio.Event()
        self._credit = asyncio.Event()
        self._credit.set()
        self._speaking: list[Speech] = []  # submitted and not yet delivered, in order
        self._delivery = Delivery(
            config, seed, self.tally, self._speaking, around.engine.info.frame_samples, around.clock, around.put
        )
        self._last: Speech | None = None
        self._voice: Reference | None = None  # what is imitated, if it is none of the model's own voices
        self._untaken = 0  # characters of segments that were not submitted yet
        self._submitted = 0

    # What the client does -------------------------------------------------------------------------------------------

    def push(self, text: str) -> None:
        """Append text."""
        self.tally.characters += len(text)
        self._add(self._segmenter.push(text, self._around.clock()))

    def flush(self) -> None:
        """Speak all that is buffered, then tell."""
        self._add([*self._segmenter.flush(), Mark.FLUSH])

    def end(self, reason: str) -> None:
        """No more text comes; `reason` as in InputEnded."""
        self.tally.reasons.add(reason)
        self._add([*self._segmenter.flush(), Mark.END])

    def grant(self, granted: bool) -> None:
        """Pause synthesis or let it go on."""
        if granted:
            self._credit.set()
        else:
            self._credit.clear()
        for speech in self._speaking:
            speech.stream.credit(granted)
            speech.paused |= not granted

    @property
    def expected_s(self) -> float:
        """About how long the speech lasts that is still to be made of the text that was cut."""
        texts = [work.spoken for work in self._work if isinstance(work, Segment)]
        return SECONDS_PER_CHARACTER * sum(map(len, texts + [speech.spoken for speech in self._speaking]))

    def progress(self, is_front: bool) -> tuple[str, int | None]:
        """(state, place in the server's queue) for `session.progress`."""
        if self._speaking and self._speaking[0].stream.started is None:
            return "queued", self._around.admission.position(self._speaking[0].stream)
        if not is_front and (self._delivery.begun or self._work or self.tally.reasons):  # a reason: its text has ended
            return "waiting_turn", None
        return ("generating" if self._speaking or self._work else "waiting_text"), None

    # From text to audio ---------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until the end of the text has been spoken.  Raises (in a group) what the engine or the admission raises."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = [
                    tasks.create_task(self._feed(), name="feed"),
                    tasks.create_task(self._delivery.run(), name="deliver"),
                ]
        finally:
            self.stop()
            self._tasks.clear()  # cancelled ones hold on to their frames, and to the audio in them

    def stop(self) -> None:
        """Free all that it holds, now; nothing is put into the outbox any more.  Idempotent."""
        for task in self._tasks:
            task.cancel()
        for speech in self._speaking:
            speech.stream.cancel()
            self._around.admission.leave_queue(speech.stream)
        self._speaking.clear()
        self._release()

    def _release(self) -> None:
        """All is generated, or nothing more is wanted: someone else may be admitted.  Idempotent."""
        if not self.generated.is_set():
            self.generated.set()
            self._around.engine.release(self._listener)

    def _add(self, work: list[Segment | Mark]) -> None:
        self._work.extend(work)
        self._arrived.set()

    async def _feed(self) -> None:
        async for work in self._next_work():
            if isinstance(work, Segment):
                await self._submit(work)
            else:
                self._delivery.add(work)
        if self._last is not None:
            await self._last.stream.generated.wait()
        self._release()

    async def _next_work(self) -> AsyncIterator[Segment | Mark]:
        """Segments and marks as they become ready, up to the end mark.  Each is kept until its turn has come."""
        while True:
            while self._work:
                yield self._work[0]
                if self._work.popleft() is Mark.END:
                    return
            await self._wait_for_text()

    async def _wait_for_text(self) -> None:
        """Until there is work or the segmenter's delay has run out."""
        self._arrived.clear()
        deadline = self._segmenter.deadline
        timeout = None if deadline is None else max(0.0, deadline - self._around.clock())
        try:
            async with asyncio.timeout(timeout):
                await self._arrived.wait()
        except TimeoutError:
            self._add(self._segmenter.expire(self._around.clock()))

    async def _submit(self, segment: Segment) -> None:
        """Hand a segment to the engine once its turn has come."""
        self._untaken += len(segment.text)
        speech = Speech(segment.text, segment.spoken)
        if speech.spoken:
            if not await self._is_turn():
                return
            self._start(speech)
            self._around.text_taken(self._untaken)
            self._untaken = 0
        self._delivery.add(speech)

    async def _is_turn(self) -> bool:
        """Wait until stage 0 has made all before it, and there is room for more audio.  False: the segment before
        failed."""
        if self._last is None:
            self.tally.asked_at = self._around.clock()
            self._voice = await self._around.reference()
            for earlier in self._around.earlier:
                await earlier.wait()
            self._around.admission.check_queue()
        else:
            await self._last.stream.generated.wait()
            if self._last.stream.finished is None:
                return False  # the stream raises it where it is delivered
        await self._credit.wait()
        return True

    def _start(self, speech: Speech) -> None:
        around, config, reference = self._around, self._config, self._reference()
        speech.submitted_at = around.clock()
        speech.stream = around.engine.submit(
            Submit(
                stream_id=around.engine.next_stream_id(),
                text=speech.spoken,
                sampling=Sampling(
                    config.temperature,
                    config.top_k,
                    config.top_p,
                    self._seed,
                    config.max_new_tokens,
                    around.repetition_penalty,
                ),
                listener=self._listener,
                segment_index=self._submitted,
                voice=config.voice if reference is None else None,
                reference=reference,
                initial_chunk_frames=config.initial_codec_chunk_frames,
                chunk_frames=config.codec_chunk_frames,
                dry_at=around.dry_at(),
            )
        )
        if self._last is None:
            self.tally.first = speech.stream
            around.admission.join_queue(speech.stream)
        self._last = speech
        self._speaking.append(speech)
        self._submitted += 1

    def _reference(self) -> Reference | None:
        """Without any voice: the first segment that has sound, so that all later ones are of its voice.  One that
        would leave them little room (it did not find its end) is passed over."""
        if self._config.voice is None and self._voice is None and self._last is not None:
            finished = self._last.stream.finished
            if 0 < finished.codes.shape[1] <= self._around.engine.info.max_seq_len // _LARGEST_REFERENCE:
                self._voice = Reference(self._last.spoken, finished.codes)
        return self._voice
