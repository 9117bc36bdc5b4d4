"""An engine without a model: it speaks a known waveform through the real streams and messages."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable

import numpy as np

from gateway.engine.replica import ReplicaState
from gateway.engine.stream import EngineError, EngineStream
from inference.messages import (
    AudioChunk,
    Cancel,
    Credit,
    Finished,
    ModelInfo,
    Reference,
    StageReport,
    Started,
    Submit,
    VoiceInfo,
)

FRAME_SAMPLES = 2048
_STAMP = 8  # samples, one for each byte
INFO = ModelInfo(
    name="scripted",
    sample_rate=44100,
    frame_samples=FRAME_SAMPLES,
    num_codebooks=10,
    max_seq_len=2048,
    voices=(VoiceInfo("ada", "en", "calm"), VoiceInfo("bo", "de", "bright")),
)


def ramp(first: int, count: int) -> np.ndarray:
    """Samples that tell their position: exact in 16 bits, and never repeated within 20,000."""
    return ((np.arange(first, first + count) % 20000 - 10000) / 32767).astype(np.float32)


def stamped(first: int, count: int) -> np.ndarray:
    """Silence that begins with the time of its making: `made_at` of its 16-bit form, seconds of CLOCK_MONOTONIC."""
    samples = np.zeros(count, np.float32)
    if count >= _STAMP:
        samples[:_STAMP] = np.frombuffer(np.float64(time.monotonic()).tobytes(), np.uint8) / np.float32(32767)
    return samples


def made_at(samples: np.ndarray) -> float:
    """See `stamped`; int16 [n]."""
    return float(samples[:_STAMP].astype(np.uint8).view(np.float64)[0])


def frames_for(text: str) -> int:
    """How many frames the text lasts: two a character."""
    return 2 * len(text)


class ScriptedEngine:
    """Has the interface of `Engine`.

    `speed`: frames a second, None as fast as the loop turns.  `frames`: how long a text is.  `fail`: text -> (chunks
    that still come, error code).  `gate` holds streams before they start, `chunk_gate` before each chunk but the first.
    `encode_gate` holds recordings.  `submitted`, `cancelled`, `credits`, `released` keep what was asked, `completed`
    what was spoken whole, `encoding` and `encoded` recordings; `live` are the streams that are being spoken.
    """

    def __init__(
        self,
        speed: float | None = None,
        waveform: Callable[[int, int], np.ndarray] = ramp,
        frames: Callable[[str], int] = frames_for,
        fail: dict[str, tuple[int, str]] | None = None,
    ) -> None:
        self.info, self.ready = INFO, True
        self.restarts, self.latest_reports = 0, []
        self.on_report: Callable[[StageReport], None] | None = None  # set by whoever wants reports
        self.gate, self.chunk_gate = asyncio.Event(), asyncio.Event()
        self.encode_gate = asyncio.Event()
        self.encode_gate.set()
        self.encoding = 0
        self.kept: list[Reference] = []
        self.encoded: list[int] = []
        self.gate.set()
        self.chunk_gate.set()
        self.submitted: list[Submit] = []
        self.cancelled: list[int] = []
        self.completed: list[int] = []
        self.credits: list[tuple[int, bool]] = []
        self.released: list[int] = []
        self.changed = asyncio.Condition()
        self._speed, self._waveform, self._frames, self._fail = speed, waveform, frames, fail or {}
        self._ids, self._listeners = itertools.count(1), itertools.count(1)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._streams: dict[int, EngineStream] = {}
        self._audio_gate: asyncio.Event | None = None
        self._notifying: set[asyncio.Task[None]] = set()
        self._credit: dict[int, asyncio.Event] = {}

    @property
    def states(self) -> list[ReplicaState]:
        """One replica."""
        return [ReplicaState(self.ready, {0: "cpu", 1: "cpu"} if self.ready else {}, restarts=0)]

    @property
    def live(self) -> set[int]:
        """Ids of the streams that are being spoken."""
        return set(self._tasks)

    async def start(self) -> None:
        """It is ready from the beginning."""

    async def close(self) -> None:
        """End all streams."""
        for task in list(self._tasks.values()):
            task.cancel()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds; it is looked at whenever something was asked of the engine or has ended."""
        async with asyncio.timeout(10), self.changed:
            await self.changed.wait_for(condition)

    def next_stream_id(self) -> int:
        return next(self._ids)

    def next_listener(self) -> int:
        return next(self._listeners)

    def release(self, listener: int) -> None:
        self.released.append(listener)
        self._tell()

    def submit(self, request: Submit) -> EngineStream:
        if not self.ready:
            raise EngineError("engine_failed", "the engine is starting, ask again in a moment", retry=True)
        stream = EngineStream(self, request)
        self.submitted.append(request)
        self._streams[request.stream_id] = stream
        self._credit[request.stream_id] = asyncio.Event()
        self._credit[request.stream_id].set()
        self._tasks[request.stream_id] = asyncio.create_task(self._speak(stream, request))
        self._tell()
        return stream

    def keep(self, reference: Reference) -> None:
        self.kept.append(reference)

    async def encode(self, samples: np.ndarray) -> np.ndarray:
        """Codes that tell how many samples there were; held by `encode_gate`."""
        self.encoding += 1
        self._tell()
        await self.encode_gate.wait()
        if not self.ready:
            raise EngineError("engine_failed", "the engine is starting, ask again in a moment", retry=True)
        self.encoded.append(len(samples))
        return np.full((INFO.num_codebooks, -(-len(samples) // FRAME_SAMPLES)), len(samples) % 1000, np.uint16)

    def send(self, stage_id: int, message: object) -> None:
        """What a stream tells the stages."""
        match message:
            case Cancel(stream_id) if stage_id == 0:
                self.cancelled.append(stream_id)
            case Credit(stream_id, granted):
                self.credits.append((stream_id, granted))
                if stream_id in self._credit:
                    self._credit[stream_id].set() if granted else self._credit[stream_id].clear()
        self._tell()

    def forget(self, stream: EngineStream) -> bool:
        """Drop a stream -> whether it was still there."""
        task = self._tasks.pop(stream.request.stream_id, None)
        if task is not None:
            task.cancel()
        return task is not None

    def hold_audio(self) -> asyncio.Event:
        """From now on stage 0 goes on, but no audio comes before the event that is returned is set."""
        self._audio_gate = asyncio.Event()
        return self._audio_gate

    def fail_all(self, reason: str) -> None:
        """As when a stage dies: every stream fails."""
        self.ready = False
        for stream_id, task in list(self._tasks.items()):
            task.cancel()
            self._streams[stream_id].deliver(EngineError("engine_failed", reason, retry=True))

    async def _speak(self, stream: EngineStream, request: Submit) -> None:
        try:
            await self.gate.wait()
            stream.deliver(Started(request.stream_id, text_tokens=len(request.text), queue_s=0.0))
            await self._make(stream, request)
        finally:
            for kept in (self._tasks, self._streams, self._credit):
                kept.pop(request.stream_id, None)
            self._tell()

    async def _make(self, stream: EngineStream, request: Submit) -> None:
        total = min(self._frames(request.text), request.sampling.max_new_tokens)
        reason = "max_length" if total < self._frames(request.text) else "done"
        finished = Finished(
            request.stream_id, reason, np.full((INFO.num_codebooks, total), request.stream_id, np.uint16)
        )
        chunks_left, code = self._fail.get(request.text, (None, ""))
        if self._audio_gate is not None and chunks_left != 0:
            stream.deliver(finished)
            await self._audio_gate.wait()
        first, began = 0, time.monotonic()
        for number, size in enumerate(_sizes(total, request)):
            if number == chunks_left:
                stream.deliver(EngineError(code, "scripted to fail"))
                return
            if number:
                await self.chunk_gate.wait()
            await self._credit[request.stream_id].wait()
            await self.pause(request, first, size, began)
            last = first + size == total
            if last and stream.finished is None:
                stream.deliver(finished)
            samples = self._waveform(first * FRAME_SAMPLES, size * FRAME_SAMPLES)
            stream.deliver(self.carried(AudioChunk(request.stream_id, first, samples, last)))
            first += size
        self.completed.append(request.stream_id)

    async def pause(self, request: Submit, first: int, size: int, began: float) -> None:
        """Before a chunk of `size` frames from `first` on, of a stream that began at the time `began`."""
        await asyncio.sleep(size / self._speed if self._speed else 0)

    def carried(self, message: AudioChunk) -> AudioChunk:
        """What arrives of a chunk: the same."""
        return message

    def _tell(self) -> None:
        """Wake those who wait in `until`."""

        async def notify() -> None:
            async with self.changed:
                self.changed.notify_all()

        task = asyncio.create_task(notify())
        self._notifying.add(task)
        task.add_done_callback(self._notifying.discard)


def _sizes(total: int, request: Submit) -> list[int]:
    """Frames of each chunk: the initial ones, full ones, the rest; one empty chunk if there is nothing."""
    sizes = [min(request.initial_chunk_frames, total)]
    while sum(sizes) < total:
        sizes.append(min(request.chunk_frames, total - sum(sizes)))
    return sizes
