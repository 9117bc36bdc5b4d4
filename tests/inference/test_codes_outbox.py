"""What stage 0 tells stage 1 beside the codes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from inference.ar_stream import Stream
from inference.chunking import Chunker, Pace
from inference.codes_outbox import CodesOutbox
from inference.connector import SharedMemoryConnector
from inference.deadlines import StreamDeadlines
from inference.messages import Sampling, Submit
from inference.prompt import Prompt
from inference.sequence import Sequence

FRAME_S = 2048 / 44100
CHUNK_WAIT_S = 3.0


@pytest.fixture
def connector() -> Iterator[SharedMemoryConnector]:
    connector = SharedMemoryConnector.create(0.01)
    yield connector
    connector.close()


def speaking() -> Stream:
    """A stream with its prefill behind it, in fixed chunks of 4, then 25 frames."""
    prompt = Prompt(packed=np.zeros((11, 5), np.int64), prefix=0, text_tokens=5)
    chunker = Chunker("fixed", 4, 25, FRAME_S)
    stream = Stream(Submit(7, "Slow.", Sampling(), listener=1), chunker, 0.0, FRAME_S, prompt, None, slot=0)
    stream.sequence = Sequence(0, 5, Sampling(), 0)
    return stream


@pytest.mark.parametrize("step_s", [0.02, 0.2, 0.9])
def test_a_stream_that_goes_on_is_waited_for_however_long_its_chunks_take(connector, step_s):
    outbox, stream = CodesOutbox(connector, CHUNK_WAIT_S), speaking()
    deadlines = StreamDeadlines(first_chunk_wait_s=30, chunk_wait_s=CHUNK_WAIT_S)
    outbox.open(stream)
    for step in range(1, 60):
        now = step * step_s
        stream.sequence.frames.append(np.zeros(10, np.uint16))
        outbox.ran(stream, now)
        outbox.send_due(stream, step == 59, now, Pace(step_s))
        while (record := connector.get()) is not None:
            deadlines.feed(record, now)
        assert deadlines.expired(now) == []
    assert len(deadlines) == 0


def test_a_stream_that_stops_is_not_waited_for_longer(connector):
    outbox, stream = CodesOutbox(connector, CHUNK_WAIT_S), speaking()
    deadlines = StreamDeadlines(first_chunk_wait_s=30, chunk_wait_s=CHUNK_WAIT_S)
    outbox.open(stream)
    for step in range(1, 7):
        stream.sequence.frames.append(np.zeros(10, np.uint16))
        outbox.ran(stream, float(step))
        outbox.send_due(stream, False, float(step), Pace(1.0))
        while (record := connector.get()) is not None:
            deadlines.feed(record, float(step))
    assert deadlines.expired(6 + CHUNK_WAIT_S - 0.01) == [] and deadlines.expired(6 + CHUNK_WAIT_S + 1.01) == [7]
