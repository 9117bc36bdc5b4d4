"""From streams to the outbox: the audio of one context's segments, in order, each with what a client is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gateway.audio.encoding import open_encoder
from gateway.audio.samples import SegmentConverter, wire_length
from gateway.session.utterance import (
    AudioPiece,
    AudioRest,
    Ending,
    FlushPoint,
    Item,
    Mark,
    SegmentBegins,
    Speech,
    Tally,
)
from protocol.config import SessionConfig


class Delivery:
    """`speaking`: segments on their way, out of which it takes those that it has delivered; the list is shared, as a
    callback of its owner would be a cycle, which keeps the audio of an ended context until the next collection.
    `frame_samples`: native ones of a frame of codes; `put` into the outbox never blocks.
    """

    def __init__(
        self,
        config: SessionConfig,
        seed: int,
        tally: Tally,
        speaking: list[Speech],
        frame_samples: int,
        clock: Callable[[], float],
        put: Callable[[Item], None],
    ) -> None:
        self._rate, self._speed = config.rate, config.speed
        self._seed, self._tally, self._speaking = seed, tally, speaking
        self._frame_samples, self._clock, self._put = frame_samples, clock, put
        self._work: asyncio.Queue[Speech | Mark] = asyncio.Queue()  # bounded by the text and the flushes of a context
        self._encoder = open_encoder(config.response_format, config.rate)
        self._unspoken = ""  # text without speech, announced with the next segment
        self._last: Speech | None = None  # that was delivered
        self.begun = False  # a segment was announced

    def add(self, work: Speech | Mark) -> None:
        """Behind all else."""
        self._work.put_nowait(work)

    async def run(self) -> None:
        """Until the end mark.  Raises what a stream raises."""
        while (work := await self._work.get()) is not Mark.END:
            if work is Mark.FLUSH:
                await self._pad()
                self._put(FlushPoint())
            elif work.stream is None:
                self._unspoken += work.text
            else:
                await self._deliver(work)
        if self._unspoken and self.begun:
            self._begin(Speech("", ""))
        if rest := await self._encoder.finish():
            self._put(AudioRest(rest))
        self._put(Ending(self._tally, self._seed))

    async def _deliver(self, speech: Speech) -> None:
        """All audio of one segment; a segment without any is announced all the same."""
        converter = SegmentConverter(self._rate, self._speed)
        begun, count = False, 0
        async for chunk in speech.stream:
            if not begun:
                self._begin(speech)
                begun = True
            if speech.stream.finished is not None:
                native = speech.stream.finished.codes.shape[1] * self._frame_samples
                speech.total = wire_length(native, self._rate, self._speed)
            samples = await converter.convert(chunk.samples, chunk.last)
            count += len(samples)
            if len(samples):
                self._put_audio(speech, await self._encoder.encode(samples), len(samples))
        self._tally.add(speech, count, self._clock())
        self._speaking.remove(speech)
        self._last = speech

    async def _pad(self) -> None:
        """Before a flush is answered, all audio before it leaves the encoder."""
        data, samples = await self._encoder.pad()
        if samples:
            self._put_audio(self._last, data, samples)

    def _put_audio(self, speech: Speech, data: bytes, samples: int) -> None:
        self._put(AudioPiece(speech, self._tally, data, samples, samples / self._rate))

    def _begin(self, speech: Speech) -> None:
        """Announce a segment, with the unspeakable text before it."""
        speech.text, self._unspoken = self._unspoken + speech.text, ""
        self._put(SegmentBegins(speech, first=not self.begun))
        self.begun = True
