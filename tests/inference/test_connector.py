"""The connector between real processes: whole records in order, whatever is full, wraps around, or is killed."""

from __future__ import annotations

import contextlib
import os
import random
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import ring_worker

from inference.connector import ConnectorFds, Feedback, SharedMemoryConnector
from inference.records import CodesChunk, ProducerStarted, StreamAborted, StreamOpened, StreamPaused, StreamResumed

PATIENCE_S = 60
ROOT = Path(__file__).parents[2]


@pytest.fixture
def connector() -> Iterator[SharedMemoryConnector]:
    """A small ring, so that records wrap around all the time."""
    made = SharedMemoryConnector.create(sleep_s=0.01, capacity=8192)
    yield made
    made.close()


@contextlib.contextmanager
def worker(role: str, seed: int, count: int, fds: ConnectorFds) -> Iterator[subprocess.Popen]:
    """The other end in its own process, already at work; killed at the end if it still runs."""
    command = [sys.executable, ring_worker.__file__, role, str(seed), str(count), *map(str, fds)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, pass_fds=fds, stdout=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stdout.readline() == b"begins\n"
            yield process
        finally:
            process.kill()


def get(connector: SharedMemoryConnector):
    """The next record, slept for."""
    for _ in range(PATIENCE_S * 100):
        if (record := connector.get()) is not None:
            return record
        connector.wait()
    raise AssertionError("no record came")


def drain(connector: SharedMemoryConnector) -> list:
    return list(iter(connector.get, None))


def chunk(stream_id: int, frames: int) -> CodesChunk:
    codes = np.arange(10 * frames, dtype=np.uint16).reshape(10, frames)
    return CodesChunk(stream_id, first_frame=4, codes=codes, last=False)


def test_a_hundred_thousand_records_reach_another_process(connector):
    with worker("read", 1, 100_000, connector.fds) as reader:
        ring_worker.write(connector, 1, 100_000)
        assert reader.wait(PATIENCE_S) == 0


def test_no_wake_up_of_another_process_is_lost(connector):
    sleeper = SharedMemoryConnector.attach(connector.fds, sleep_s=PATIENCE_S)
    with worker("write", 2, 20_000, connector.fds) as writer:
        for index in range(20_000):
            while (record := sleeper.get()) is None:
                assert sleeper.wait()
            assert ring_worker.same(record, ring_worker.made(2, index))
        assert writer.wait(PATIENCE_S) == 0
    assert sleeper.get() is None
    sleeper.close()


def test_a_writer_killed_at_any_moment_leaves_whole_records_and_the_next_goes_on(connector):
    rng = random.Random(3)
    for seed in range(12):
        with worker("write", seed, 10**9, connector.fds) as writer:
            seen = rng.randrange(1500)
            for index in range(seen):
                assert ring_worker.same(get(connector), ring_worker.made(seed, index))
            writer.kill()
            writer.wait(PATIENCE_S)
        for index, record in enumerate(drain(connector), start=seen):
            assert ring_worker.same(record, ring_worker.made(seed, index))


def test_a_reader_killed_leaves_the_ring_to_the_next_which_resets_it(connector):
    connector.publish(Feedback(0.5, 0.6, 9))
    with worker("read", 4, 10**9, connector.fds) as reader:
        ring_worker.write(connector, 4, 2000)
        reader.kill()
        reader.wait(PATIENCE_S)
    while connector.put(chunk(1, 25)):  # chunks of streams that died with the reader
        pass
    successor = SharedMemoryConnector.attach(connector.fds, sleep_s=0.01)
    successor.reset()
    assert successor.get() is None and connector.feedback == Feedback()
    assert connector.put(StreamAborted(5)) and successor.get() == StreamAborted(5)
    successor.close()


def test_a_full_ring_takes_nothing_and_loses_nothing(connector):
    put = 0
    while connector.put(chunk(put, 20)):
        put += 1
    assert put > 10 and not connector.put(chunk(put, 20))
    assert connector.get().stream_id == 0
    assert connector.put(chunk(put, 20))
    assert [record.stream_id for record in drain(connector)] == list(range(1, put + 1))


def test_a_record_that_never_fits_is_an_error(connector):
    with pytest.raises(ValueError, match="does not fit into a ring of 8192"):
        connector.put(chunk(0, 1000))
    assert connector.get() is None


@pytest.mark.parametrize(
    "codes", [np.zeros(10, np.uint16), np.zeros((10, 4), np.int64), np.zeros((0, 4), np.uint16)], ids=str
)
def test_malformed_codes_are_an_error_of_the_producer(connector, codes):
    with pytest.raises(ValueError, match="codes must be uint16"):
        connector.put(CodesChunk(1, 0, codes, False))


def test_all_records_arrive_as_they_were(connector):
    records = [
        ProducerStarted(),
        StreamOpened(2**64 - 1, 12.25),
        StreamOpened(7, None),
        StreamPaused(1),
        StreamResumed(2),
        StreamAborted(3),
    ]
    assert all(map(connector.put, records))
    assert drain(connector) == records
    for frames in (0, 1, 25):
        sent = CodesChunk(7, 2**32 - 1, np.asfortranarray(chunk(7, frames).codes), last=not frames)
        assert connector.put(sent)
        got = connector.get()
        assert ring_worker.same(got, sent) and got.codes.shape == (10, frames)
        got.codes[:] = 0  # its own memory, not the ring's


def test_a_wake_up_makes_the_connector_readable_until_it_is_empty(connector):
    assert select.select([connector], [], [], 0)[0] == [] and not connector.wait()
    connector.put(StreamPaused(1))
    connector.put(StreamPaused(2))
    assert select.select([connector], [], [], PATIENCE_S)[0] == [connector] and connector.wait(PATIENCE_S)
    assert connector.get() == StreamPaused(1)
    assert connector.wait(0)
    assert drain(connector) == [StreamPaused(2)]
    assert not connector.wait(0)


def test_more_wake_ups_than_the_pipe_holds_block_nobody():
    connector = SharedMemoryConnector.create(sleep_s=0.01, capacity=1 << 22)
    for index in range(100_000):  # a pipe holds 65,536
        assert connector.put(StreamPaused(index))
    assert len(drain(connector)) == 100_000 and not connector.wait(0)
    connector.close()


def test_feedback_is_seen_at_the_other_end(connector):
    other = SharedMemoryConnector.attach(connector.fds, sleep_s=0.01)
    assert other.feedback == Feedback()
    shown = Feedback(seconds_per_frame=0.004, busy_seconds_per_frame=0.003, ahead_frames=33, spare_s=-0.5)
    connector.publish(shown)
    assert other.feedback == shown
    other.close()


def test_nothing_is_left_behind():
    before = set(os.listdir("/dev/fd"))
    connector = SharedMemoryConnector.create(sleep_s=0.01)
    link = Path(f"/dev/fd/{connector.fds.memory}")
    assert not link.is_symlink() or "(deleted)" in os.readlink(link)
    connector.close()
    connector.close()
    assert set(os.listdir("/dev/fd")) == before
