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

    def __init__(self, connector: SharedMemoryConnector) -> None:
        self._connector = connector
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
                stream.chunker.sent(frames, now, pace)
            if last or not frames:
                break
        self.flush()

    def pause(self, stream: Stream) -> None:
        """Stage 1 need not wait for a stream that is held back.  Idempotent."""
        if stream.sequence is not None and not stream.paused:
            stream.paused = True
            self._unsent.append(StreamPaused(stream.request.stream_id))

    def resume(self, stream: Stream) -> None:
        """A stream that may run has run: its chunks are due again.  Idempotent."""
        if stream.paused and stream.credit:
            stream.paused = False
            self._unsent.append(StreamResumed(stream.request.stream_id))

    def abort(self, stream: Stream) -> None:
        """The stream brings nothing more."""
        if stream.opened:
            self._unsent.append(StreamAborted(stream.request.stream_id))
