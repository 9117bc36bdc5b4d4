"""What stage 0 hands over to stage 1: records that wait for room in the connector, in order."""

from __future__ import annotations

from collections import deque

from inference.ar_stream import Stream
from inference.chunking import Pace
from inference.connector import SharedMemoryConnector
from inference.records import (
    CodesChunk,
    ProducerStarted,
    Record,
    StreamAborted,
    StreamOpened,
    StreamPaused,
    StreamResumed,
)


class CodesOutbox:
    """Nothing is dropped: while the connector has no room, its owner makes no more (`is_blocked`)."""

    def __init__(self, connector: SharedMemoryConnector, chunk_wait_s: float) -> None:
        """`chunk_wait_s`: how long stage 1 waits for a chunk."""
        self._connector, self._retell_s = connector, chunk_wait_s / 3
        self._unsent: deque[Record] = deque([ProducerStarted()])

    @property
    def is_blocked(self) -> bool:
        """Something waits for room."""
        return bool(self._unsent)

    def flush(self) -> None:
        """Hand over what there is room for."""
        while self._unsent and self._connector.put(self._unsent[0]):
            self._unsent.popleft()

    def open(self, stream: Stream) -> None:
        """Stage 1 begins to wait for the stream's chunks."""
        stream.opened = True
        self._unsent.append(StreamOpened(stream.request.stream_id, stream.chunker.dry_at))

    def send_due(self, stream: Stream, ended: bool, now: float, pace: Pace) -> None:
        """The chunks whose time has come; if the stream has `ended`, all that is left of it."""
        while True:
            frames = stream.chunker.due(stream.pending, ended, now, pace)
            last = ended and frames == stream.pending
            if frames or last:
                if not stream.opened:
                    self.open(stream)
                first = stream.chunker.sent_frames
                codes = stream.codes(first, first + frames)
                self._unsent.append(CodesChunk(stream.request.stream_id, first, codes, last))
                stream.told_at = now
                stream.chunker.sent(frames, now, pace)
            if last or not frames:
                break
        self.flush()

    def pause(self, stream: Stream) -> None:
        """Stage 1 need not wait for a stream that is held back.  Idempotent."""
        if stream.sequence is not None and not stream.paused:
            stream.paused = True
            self._unsent.append(StreamPaused(stream.request.stream_id))

    def ran(self, stream: Stream, now: float) -> None:
        """A stream has made a frame: stage 1 waits for its chunk again, or still.

        To make a whole chunk may take longer than the wait, on a slow machine or with many listeners: stage 1 is told
        now and then that the stream goes on.
        """
        stream.ran_at = now
        if stream.credit and (stream.paused or now - stream.told_at > self._retell_s):
            stream.paused, stream.told_at = False, now
            self._unsent.append(StreamResumed(stream.request.stream_id))

    def abort(self, stream: Stream) -> None:
        """The stream brings nothing more."""
        if stream.opened:
            self._unsent.append(StreamAborted(stream.request.stream_id))
