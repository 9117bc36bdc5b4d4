"""Stage 1: codes in, samples out; the listener who would run dry first comes first."""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import torch

from inference.channel import StageChannel
from inference.checkpoint import Checkpoint
from inference.chunking import ListenerClock
from inference.codec_stream import StatefulDecoder, WindowedDecoder
from inference.connector import Feedback, SharedMemoryConnector
from inference.deadlines import StreamDeadlines
from inference.deploy import DeployConfig
from inference.device import device_memory, weight_bytes
from inference.heart import Heart
from inference.memory import check_weights
from inference.messages import AudioChunk, Cancel, Failed
from inference.records import CodesChunk, ProducerStarted, StreamAborted, StreamOpened
from inference.report import CodecCounts

log = logging.getLogger("audio8.stage1")

PIECE_FRAMES = 8  # frames of one codec call: between two calls a more urgent stream may come first


@dataclass(slots=True, eq=False)
class Stream:
    """One segment on its way from codes to samples."""

    stream_id: int
    clock: ListenerClock
    order: int
    state: object
    chunks: deque[CodesChunk] = field(default_factory=deque)
    samples: list[np.ndarray] = field(default_factory=list)  # what of chunks[0] is decoded
    decoded: int = 0  # frames of chunks[0] that are decoded

    def urgency(self) -> tuple[float, int]:
        """Sorts first who has heard nothing, in order of arrival, then who is dry first."""
        return (self.clock.dry_at or 0.0, self.order)

    def next_piece(self, longest: int) -> np.ndarray:
        """The codes to decode next, [Q, at most `longest`]."""
        return self.chunks[0].codes[:, self.decoded : self.decoded + longest]


class CodecStage:
    """Owns the codec and the decode state of each stream.  One thread."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        deploy: DeployConfig,
        channel: StageChannel,
        connector: SharedMemoryConnector,
        device: str,
    ):
        """Reads the weights and decodes a little.  Raises what loading raises."""
        self._checkpoint, self._deploy, self._channel, self._connector = checkpoint, deploy, channel, connector
        self._decoder = _decoder(checkpoint, deploy, device)
        self._deadlines = StreamDeadlines(deploy.connector.first_chunk_wait_s, deploy.connector.chunk_wait_s)
        self._streams: dict[int, Stream] = {}
        self._opened = 0
        self._counts = CodecCounts()
        self._heart = Heart(1, deploy.connector.chunk_wait_s, channel.send)
        self._feedback = self._warm_up()
        connector.reset()
        connector.publish(self._feedback)

    def run(self) -> None:
        """Serve until the gateway closes the channel (ChannelClosed)."""
        while True:
            self._report()
            self._heart.beat()
            if not self._ready():
                self._channel.wait(self._longest_sleep(), self._connector)
            for message in self._channel.receive():
                if isinstance(message, Cancel) and (stream := self._streams.get(message.stream_id)):
                    self._end(stream)
            self.step()

    def step(self) -> None:
        """Take what has come, decode a piece for the most urgent streams, send the chunks that are whole."""
        self._take()
        for stream_id in self._deadlines.expired(time.monotonic()):
            self._expire(stream_id)
        batch = self._batch()
        if batch:
            self._decode(batch)
        self._publish()

    def _take(self) -> None:
        while (record := self._connector.get()) is not None:
            self._deadlines.feed(record, time.monotonic())
            match record:
                case ProducerStarted():
                    for stream in list(self._streams.values()):
                        self._end(stream)
                case StreamOpened(stream_id=stream_id, dry_at=dry_at):
                    self._opened += 1
                    clock = ListenerClock(1 / self._checkpoint.config.frame_rate, dry_at)
                    self._streams[stream_id] = Stream(stream_id, clock, self._opened, self._decoder.open())
                case CodesChunk(stream_id=stream_id) if stream := self._streams.get(stream_id):
                    stream.chunks.append(record)
                case StreamAborted(stream_id=stream_id) if stream := self._streams.get(stream_id):
                    self._end(stream)

    def _ready(self) -> list[Stream]:
        return [stream for stream in self._streams.values() if stream.chunks]

    def _batch(self) -> list[Stream]:
        """The most urgent stream and those that can be decoded in the same call."""
        ready = sorted(self._ready(), key=Stream.urgency)
        if not ready:
            return []
        wanted = self._kind(ready[0])
        alike = [stream for stream in ready if self._kind(stream) == wanted]
        frames = max(1, ready[0].next_piece(self._longest()).shape[1])
        return alike[
            : max(1, min(self._deploy.codec.max_num_seqs, self._deploy.codec.max_num_batched_tokens // frames))
        ]

    def _kind(self, stream: Stream) -> tuple[int, object]:
        return stream.next_piece(self._longest()).shape[1], self._decoder.alike(stream.state)

    def _longest(self) -> int:
        return PIECE_FRAMES if self._decoder.pieces else self._deploy.codec.max_model_len

    def _decode(self, batch: list[Stream]) -> None:
        codes = np.stack([stream.next_piece(self._longest()) for stream in batch])
        self._heart.beat(codes.shape[2] * len(batch) * self._feedback.seconds_per_frame)
        begin = time.monotonic()
        try:
            if codes.shape[2]:
                for stream, samples in zip(batch, self._decoder.decode([s.state for s in batch], codes), strict=True):
                    stream.samples.append(samples)
        except Exception as error:
            log.exception("a decode failed; its %d streams end", len(batch))
            for stream in batch:
                self._fail(stream, "engine_failed", f"the codec failed: {error}")
            return
        seconds, frames = time.monotonic() - begin, codes.shape[2] * len(batch)
        self._feedback = self._feedback.measured(frames, seconds)
        if frames:
            self._counts.decoded(seconds, frames)
        for stream in batch:
            stream.decoded += codes.shape[2]
            if stream.decoded == stream.chunks[0].codes.shape[1]:
                self._send(stream)

    def _send(self, stream: Stream) -> None:
        """The stream's first chunk is decoded."""
        chunk = stream.chunks.popleft()
        samples = np.concatenate(stream.samples) if stream.samples else np.zeros(0, dtype=np.float32)
        stream.samples, stream.decoded = [], 0
        stream.clock.sent(chunk.codes.shape[1], time.monotonic())
        if chunk.last:
            self._end(stream)
        self._channel.send(AudioChunk(stream.stream_id, chunk.first_frame, samples, chunk.last))

    def _expire(self, stream_id: int) -> None:
        """No chunk came for too long."""
        if stream := self._streams.get(stream_id):
            self._fail(stream, "stage_timeout", "stage 0 brought no codes in time")

    def _fail(self, stream: Stream, code: str, message: str) -> None:
        self._end(stream)
        self._channel.send(Failed(stream.stream_id, code, message))

    def _end(self, stream: Stream) -> None:
        """Whatever ends a stream comes through here."""
        del self._streams[stream.stream_id]
        self._deadlines.forget(stream.stream_id)

    def _publish(self) -> None:
        waiting = sum(chunk.codes.shape[1] for stream in self._streams.values() for chunk in stream.chunks)
        decoded = sum(stream.decoded for stream in self._streams.values())
        self._feedback = Feedback(self._feedback.seconds_per_frame, waiting - decoded)
        self._connector.publish(self._feedback)

    def _report(self) -> None:
        """Tell the gateway what was done, if it is time."""
        if self._counts.due(time.monotonic(), busy=bool(self._streams)):
            self._channel.send(self._counts.take(len(self._streams), self._feedback.backlog_frames))

    def _longest_sleep(self) -> float:
        deadline = self._deadlines.next_deadline
        sleep = self._deploy.connector.get_sleep_s
        return sleep if deadline is None else max(0.0, min(sleep, deadline - time.monotonic()))

    def _warm_up(self) -> Feedback:
        """Decode some silence in the sizes to come, and measure."""
        connector, books = self._deploy.connector, self._checkpoint.config.num_codebooks
        state, feedback = self._decoder.open(), Feedback()
        for frames in (connector.initial_chunk_frames, min(self._longest(), connector.chunk_frames)) * 2:
            begin = time.monotonic()
            self._decoder.decode([state], np.zeros((1, books, frames), dtype=np.uint16))
            feedback = Feedback().measured(frames, time.monotonic() - begin)
        return feedback


def _decoder(checkpoint: Checkpoint, deploy: DeployConfig, device: str) -> StatefulDecoder | WindowedDecoder:
    connector = deploy.connector
    tf32 = connector.codec_matmul_precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    codec = checkpoint.load_codec(connector.codec_dtype, device)
    check_weights(device_memory(device, deploy.codec), deploy.codec.memory_utilization, weight_bytes(codec))
    if connector.decode == "stateful":
        return StatefulDecoder(codec)
    return WindowedDecoder(codec, connector.left_context_frames)
