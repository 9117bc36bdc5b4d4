"""From the bytes of a recording to the codes that the model imitates; the latest ones are remembered by content."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict

import numpy as np

from gateway.engine.engine import Engine
from gateway.errors import Overloaded
from gateway.voices.recording_process import decode_recording
from gateway.voices.recording_rules import BadRecording
from inference.messages import ModelInfo, Reference

_AT_ONCE = 2  # decoders, each a process, and recordings in stage 1
_MOST_WAITING = 16
_KEPT = 256  # of some 10 kB each
_ENCODE_S = 60.0  # speaking listeners come first: on a machine that they fill there may be no time at all
_LARGEST_PART = 0.75  # of the model's positions: text and speech of a segment need the rest


class VoiceCoder:
    """Decodes and checks in a process, encodes in stage 1."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: OrderedDict[bytes, np.ndarray] = OrderedDict()
        self._running: dict[bytes, asyncio.Task[np.ndarray]] = {}
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def reference(self, audio: bytes, text: str) -> Reference:
        """A recording, and what is said in it, as a voice.  Raises BadRecording, Overloaded or EngineError."""
        reference = Reference(text, await self._codes(audio))
        _check_fits(reference, self._engine.info)
        return reference

    async def _codes(self, audio: bytes) -> np.ndarray:
        """Each recording is encoded once, however many ask for it at a time."""
        digest = await asyncio.to_thread(_digest, audio)
        if digest in self._kept:
            self._kept.move_to_end(digest)
            return self._kept[digest]
        task = self._running.get(digest)
        if task is None:
            if len(self._running) >= _MOST_WAITING:
                raise Overloaded(f"{len(self._running)} recordings wait to be encoded, which is the limit")
            task = self._running[digest] = asyncio.create_task(self._encode(audio), name="voice coder")
            task.add_done_callback(lambda done: self._finish(digest, done))
        return await asyncio.shield(task)

    async def _encode(self, audio: bytes) -> np.ndarray:
        async with self._room:
            samples = await decode_recording(audio, self._engine.info.sample_rate)
            try:
                async with asyncio.timeout(_ENCODE_S):
                    return await self._engine.encode(samples)
            except TimeoutError:
                raise Overloaded("there was no time to encode the recording: listeners come first") from None

    def _finish(self, digest: bytes, task: asyncio.Task[np.ndarray]) -> None:
        """Remember codes; an error is for those who wait, should there be any."""
        del self._running[digest]
        if task.cancelled() or task.exception() is not None:
            return
        self._kept[digest] = task.result()
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)


def _digest(audio: bytes) -> bytes:
    """In a thread: of many megabytes it takes too long for the loop."""
    return hashlib.sha256(audio).digest()


def _check_fits(reference: Reference, info: ModelInfo) -> None:
    """A token is at least a byte, so this errs on the safe side."""
    frames, text = reference.codes.shape[1], len(reference.text.encode())
    most = int(info.max_seq_len * _LARGEST_PART)
    if frames + text > most:
        raise BadRecording(f"the recording ({frames} frames) and its transcript ({text} bytes) exceed {most} together")
