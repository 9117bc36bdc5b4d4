"""Stage 1: codes in, samples out; the listener who would run dry first comes first.  In between it encodes voices."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import numpy as np
import torch

from inference.average import WorkTime
from inference.channel import StageChannel
from inference.checkpoint import Checkpoint
from inference.chunking import PIECE_FRAMES
from inference.codec import Codec
from inference.codec_stream import StatefulDecoder, WindowedDecoder
from inference.connector import Feedback, SharedMemoryConnector
from inference.deadlines import StreamDeadlines
from inference.decode_queue import Call, CodecStream, DecodeQueue
from inference.deploy import DeployConfig
from inference.device import check_usable, device_memory, weight_bytes
from inference.encode_queue import EncodeQueue
from inference.heart import Heart
from inference.memory import check_weights
from inference.messages import AudioChunk, Cancel, Encode, EncodeFailed, Failed
from inference.records import CodesChunk, ProducerStarted, StreamAborted, StreamOpened
from inference.report import CodecCounts

if TYPE_CHECKING:
    from inference.cuda.codec_graphs import GraphDecoder

log = logging.getLogger("audio8.stage1")

_SPARE_PIECES = 2  # a piece is encoded if nobody needs a decode within so many of its durations


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
        codec = _codec(checkpoint, deploy, device)
        self._decoder = _decoder(codec, deploy, checkpoint.config.num_codebooks)
        self._recordings = EncodeQueue(codec)
        self._deadlines = StreamDeadlines(deploy.connector.first_chunk_wait_s, deploy.connector.chunk_wait_s)
        self._queue = DecodeQueue(
            1 / checkpoint.config.frame_rate,
            self._piece(),
            deploy.codec.max_num_seqs,
            deploy.codec.max_num_batched_tokens,
            self._joined(),
            self._decoder.alike,
        )
        self._counts = CodecCounts()
        self._heart = Heart(1, deploy.connector.chunk_wait_s, channel.send)
        self._frame_time = WorkTime()
        self._warm_up()
        connector.reset()
        self._publish()

    def run(self) -> None:
        """Serve until the gateway closes the channel (ChannelClosed)."""
        while True:
            self._report()
            self._heart.beat()
            if not self._queue.ready() and not self._recordings:
                self._channel.wait(self._longest_sleep(), self._connector)
            for message in self._channel.receive():
                self._handle(message)
            self.step()

    def _handle(self, message: object) -> None:
        match message:
            case Cancel(stream_id=stream_id) if stream := self._queue.get(stream_id):
                self._end(stream)
            case Cancel(stream_id=request_id):
                self._recordings.cancel(request_id)
            case Encode():
                self._recordings.add(message)

    def step(self) -> None:
        """Take what has come, decode a piece for the most urgent streams, send the chunks that are whole.  Encode a
        piece if there is time."""
        self._take()
        for stream_id in self._deadlines.expired(time.monotonic()):
            self._expire(stream_id)
        call = self._queue.next_call(time.monotonic(), self._frame_time.now)
        if call is not None:
            self._decode(call)
        if self._recordings:
            self._encode_if_idle()
        self._publish()

    def _encode_if_idle(self) -> None:
        """A piece of a recording, unless a listener would have to wait for it."""
        piece_s = self._recordings.piece_s
        if self._queue.spare_s(time.monotonic(), self._frame_time.now) <= _SPARE_PIECES * piece_s:
            return
        self._heart.beat(piece_s)
        try:
            encoded = self._recordings.step()
        except Exception as error:
            log.exception("a recording could not be encoded")
            check_usable(error)
            self._channel.send(EncodeFailed(self._recordings.drop().request_id, f"the codec failed: {error}"))
            return
        if encoded is not None:
            self._channel.send(encoded)

    def _take(self) -> None:
        while (record := self._connector.get()) is not None:
            self._deadlines.feed(record, time.monotonic())
            match record:
                case ProducerStarted():
                    for stream in list(self._queue):
                        self._end(stream)
                case StreamOpened(stream_id=stream_id, dry_at=dry_at):
                    self._queue.open(stream_id, dry_at, self._decoder.open())
                case CodesChunk(stream_id=stream_id) if self._queue.get(stream_id):
                    self._queue.put(record)
                case StreamAborted(stream_id=stream_id) if stream := self._queue.get(stream_id):
                    self._end(stream)

    def _piece(self) -> int:
        return PIECE_FRAMES if self._decoder.pieces else self._deploy.codec.max_model_len

    def _joined(self) -> int:
        connector = self._deploy.connector
        free = self._decoder.pieces and connector.chunk_policy == "adaptive"
        return max(PIECE_FRAMES, connector.chunk_frames) if free else 0

    def _decode(self, call: Call) -> None:
        self._heart.beat(call.frames * self._frame_time.now)
        begin = time.monotonic()
        try:
            if call.frames:
                states = [stream.state for stream in call.streams]
                for stream, samples in zip(call.streams, self._decoder.decode(states, call.codes), strict=True):
                    stream.samples.append(samples)
        except Exception as error:
            log.exception("a decode failed; its %d streams end", len(call.streams))
            check_usable(error)
            for stream in call.streams:
                self._fail(stream, "engine_failed", f"the codec failed: {error}")
            return
        now = time.monotonic()
        if call.frames:
            self._measured(now - begin, call.frames)
            self._counts.decoded(now - begin, call.frames)
        for stream in call.streams:
            if chunk := self._queue.advance(stream, call.codes.shape[2], now):
                self._send(stream, chunk)

    def _measured(self, seconds: float, frames: int) -> None:
        """A busy codec decodes whole pieces; short ones are of streams that begin, or come while it has time."""
        self._frame_time.add(seconds, frames, busy=frames >= self._piece() or not self._decoder.pieces)

    def _send(self, stream: CodecStream, chunk: CodesChunk) -> None:
        """A chunk is decoded."""
        samples = np.concatenate(stream.samples) if stream.samples else np.zeros(0, dtype=np.float32)
        stream.samples = []
        if chunk.last:
            self._end(stream)
        self._channel.send(AudioChunk(stream.stream_id, chunk.first_frame, samples, chunk.last))

    def _expire(self, stream_id: int) -> None:
        """No chunk came for too long."""
        if stream := self._queue.get(stream_id):
            self._fail(stream, "stage_timeout", "stage 0 brought no codes in time")

    def _fail(self, stream: CodecStream, code: str, message: str) -> None:
        self._end(stream)
        self._channel.send(Failed(stream.stream_id, code, message))

    def _end(self, stream: CodecStream) -> None:
        """Whatever ends a stream comes through here."""
        self._queue.close(stream.stream_id)
        self._deadlines.forget(stream.stream_id)

    def _publish(self) -> None:
        now, times, queue = time.monotonic(), self._frame_time, self._queue
        self._connector.publish(Feedback(times.now, times.busy, queue.ahead, queue.spare_s(now, times.now)))

    def _report(self) -> None:
        """Tell the gateway what was done, if it is time."""
        if self._counts.due(time.monotonic(), busy=bool(len(self._queue))):
            self._channel.send(self._counts.take(len(self._queue), self._queue.backlog))

    def _longest_sleep(self) -> float:
        deadline = self._deadlines.next_deadline
        sleep = self._deploy.connector.get_sleep_s
        return sleep if deadline is None else max(0.0, min(sleep, deadline - time.monotonic()))

    def _warm_up(self) -> None:
        """Decode some silence in the sizes to come, and measure."""
        connector, books = self._deploy.connector, self._checkpoint.config.num_codebooks
        state = self._decoder.open()
        sizes = (connector.initial_chunk_frames, min(self._piece(), connector.chunk_frames))
        for frames in sizes * 2:
            begin = time.monotonic()
            self._decoder.decode([state], np.zeros((1, books, frames), dtype=np.uint16))
            seconds = time.monotonic() - begin
        self._frame_time.add(seconds, frames, busy=False)


def _codec(checkpoint: Checkpoint, deploy: DeployConfig, device: str) -> Codec:
    connector = deploy.connector
    tf32 = connector.codec_matmul_precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    codec = checkpoint.load_codec(connector.codec_dtype, device)
    check_weights(device_memory(device, deploy.codec), deploy.codec.memory_utilization, weight_bytes(codec))
    return codec


def _decoder(codec: Codec, deploy: DeployConfig, books: int) -> StatefulDecoder | WindowedDecoder | GraphDecoder:
    cuda = next(codec.parameters()).is_cuda
    if cuda:
        from inference.cuda.snake import fuse_snakes  # kernels: not for a process without such a device

        fuse_snakes(codec)
    if deploy.connector.decode == "windowed":
        return WindowedDecoder(codec, deploy.connector.left_context_frames)
    if not cuda or deploy.codec.enforce_eager:
        return StatefulDecoder(codec)
    from inference.cuda.codec_graphs import GraphDecoder

    return GraphDecoder(codec, books, deploy.codec.max_num_seqs)
