"""The embedded voice: engines that speak with it, and what offline generation makes of the same request."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from real_engine import EXTRA, OURS, deploy_file
from running_gateway import running
from stream_client import Heard, StreamClient

from gateway.assets import DEPLOY_CONFIG
from gateway.engine.engine import Engine
from gateway.engine.stream import EngineStream
from gateway.server import settings_from
from inference.checkpoint import Checkpoint
from inference.chunking import PIECE_FRAMES
from inference.codec import Codec
from inference.codec_stream import StatefulDecoder, WindowedDecoder
from inference.generate import generate
from inference.messages import ARReport, Sampling, StageReport, Submit
from inference.runner import ARRunner

FIRST, CHUNK, CONTEXT = 4, 25, 25  # frames, as in the deploy file
STEP = 1 / 32768  # of 16-bit samples
Decoder = StatefulDecoder | WindowedDecoder


@dataclass(frozen=True)
class Offline:
    """The model without stages: each utterance alone."""

    checkpoint: Checkpoint
    runner: ARRunner
    codec: Codec

    def codes(self, request: Submit) -> np.ndarray:
        """What a stream of this request has to make, uint16 [Q, T]."""
        reference = self.checkpoint.voices()[request.voice].reference if request.voice else request.reference
        packed = self.checkpoint.prompt_builder().build(request.text, reference).packed
        return generate(self.runner, [packed], [request.sampling], [request.segment_index])[0]

    def whole(self, codes: np.ndarray) -> np.ndarray:
        """One decode of all frames."""
        with torch.inference_mode():
            return self.codec.decode(torch.from_numpy(codes.astype(np.int64))[None])[0].numpy()

    def stateful(self, codes: np.ndarray) -> np.ndarray:
        """Decoded as stage 1 does with fixed chunks: in the same pieces, so that not even a rounding differs."""
        return _in_pieces(StatefulDecoder(self.codec), codes, PIECE_FRAMES)

    def windowed(self, codes: np.ndarray) -> np.ndarray:
        """Each fixed chunk decoded behind the frames before it."""
        return _in_pieces(WindowedDecoder(self.codec, CONTEXT), codes, CHUNK)


def fixed(frames: int) -> list[int]:
    """Sizes of fixed chunks."""
    sizes = [min(FIRST, frames)]
    while sum(sizes) < frames:
        sizes.append(min(CHUNK, frames - sum(sizes)))
    return sizes


def _in_pieces(decoder: Decoder, codes: np.ndarray, longest: int) -> np.ndarray:
    state, samples = decoder.open(), []
    for chunk in np.split(codes, np.cumsum(fixed(codes.shape[1]))[:-1], axis=1):
        for start in range(0, chunk.shape[1], longest):
            samples.append(decoder.decode([state], chunk[None, :, start : start + longest])[0])
    return np.concatenate(samples)


@pytest.fixture(scope="session")
def offline() -> Offline:
    """With as many threads as the stages have: sums of another order may differ in the last bit."""
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))
    checkpoint = Checkpoint.open(None)
    return Offline(
        checkpoint, ARRunner(checkpoint.load_dual_ar("float32"), width=4, slots=1), checkpoint.load_codec("float32")
    )


class HeardEngine(Engine):
    """The engine, with a record of the streams that were asked of it and of what its stages reported."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.streams: list[EngineStream] = []
        self.reports: list[StageReport] = []
        self._reported = asyncio.Event()
        self.on_report = self._keep

    def submit(self, request: Submit) -> EngineStream:
        self.streams.append(super().submit(request))
        return self.streams[-1]

    def ask(self, text: str, voice: str, seed: int, listener: int | None = None, **sampling) -> EngineStream:
        """Speak, by default for a listener of its own."""
        listener = self.next_listener() if listener is None else listener
        sampling = Sampling(seed=seed, **sampling)
        return self.submit(Submit(self.next_stream_id(), text, sampling, listener, voice=voice))

    def _keep(self, report: StageReport) -> None:
        self.reports.append(report)
        self._reported.set()

    async def idle(self) -> None:
        """Once stage 0 has reported its steps and that it holds nothing more."""
        while not self.rows or any(report.resident for report in self.latest_reports if isinstance(report, ARReport)):
            self._reported.clear()
            await self._reported.wait()

    @property
    def rows(self) -> list[int]:
        """Streams in each step so far, as reported."""
        return [rows for report in self.reports if isinstance(report, ARReport) for _, rows in report.steps]


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[int, HeardEngine]]:
    """The gateway with the embedded voice as it ships: its port, and the engine."""
    engine = HeardEngine(None, DEPLOY_CONFIG, "cpu", "warning")
    await engine.start()
    async with running(engine, settings_from(engine.deploy)) as gateway:
        yield gateway.port, engine


async def speak(texts: list[tuple[str, str | None]], at_once: int = 4) -> tuple[list[Heard], list[EngineStream]]:
    """(text, voice) pairs, each on a socket of its own, words one message each -> what was heard, and the streams."""
    room = asyncio.Semaphore(at_once)

    async def one(port: int, index: int, text: str, voice: str | None) -> Heard:
        async with room, await StreamClient.open(port) as client:
            await client.say("session.config", voice=voice, seed=index)
            for word in text.split(" "):
                await client.say("input.text", text=f"{word} ")
            await client.say("input.done")
            return await client.whole("_0")

    async with serving() as (port, engine):
        heard = await asyncio.gather(*(one(port, index, *pair) for index, pair in enumerate(texts)))
    return heard, engine.streams


def samples(heard: Heard) -> np.ndarray:
    return np.frombuffer(heard.audio, "<i2").astype(np.float32) * STEP


@pytest.fixture
def embedded(tmp_path) -> Callable:
    """`async with embedded(**changes) as engine`: the deploy file with changes, and none of its own liberties: fixed
    chunks, no prefix kept, both stages in one process, which starts soonest.  No wait is too long on a busy machine."""
    extra = {f"{EXTRA}connector_get_max_wait": 3000, f"{EXTRA}codec_chunk_policy": "fixed"}
    plain = {"ignore_eos": False, "stage_placement": "threads", "stages__0__enable_prefix_caching": False, **extra}

    @asynccontextmanager
    async def start(**changes) -> AsyncIterator[HeardEngine]:
        file: Path = tmp_path / "deploy.yaml"
        deploy_file(file, OURS, **{**plain, **changes})
        engine = HeardEngine(None, file, "cpu", "warning")
        await engine.start()
        try:
            yield engine
        finally:
            await engine.close()

    return start
