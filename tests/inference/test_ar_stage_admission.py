"""Stage 0 takes on as many listeners as both stages have time for, and the next one when one is released."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from running_stage import running_stage

from inference.ar_stage import ARStage
from inference.channel import Unframer, frame
from inference.connector import Feedback, SharedMemoryConnector
from inference.messages import Finished, Release, Sampling, Started, Submit

SLOW, FAST = Feedback(10.0, 10.0), Feedback(1e-6, 1e-6)
BEHIND = Feedback(1e-6, 1e-6, ahead_frames=40, spare_s=-0.1)


class Gateway:
    """Asks for speech and notes what comes, in order."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel, self._unframer = channel, Unframer()
        self.noted: list[str] = []

    def ask(self, name: int, listener: int) -> None:
        sampling = Sampling(seed=name, max_new_tokens=6)
        self._channel.sendall(frame(Submit(name, "hello world", sampling, listener, voice="ada")))

    def release(self, listener: int) -> None:
        self._channel.sendall(frame(Release(listener)))

    def until(self, noted: str) -> None:
        while noted not in self.noted:
            for message in self._unframer.feed(self._channel.recv(1 << 16)):
                if isinstance(message, Started | Finished):
                    self.noted.append(f"{type(message).__name__.lower()} {message.stream_id}")


@pytest.fixture
def stage(tmp_path) -> Iterator[tuple[Gateway, SharedMemoryConnector]]:
    with running_stage(ARStage, tmp_path, max_num_streams=8) as (_, channel, connector):
        yield Gateway(channel), connector


def test_who_speaks_goes_on_and_the_next_one_waits_for_its_release(stage):
    """The codec is slow: one listener fits.  Its second segment, asked for last, comes before the other listener."""
    gateway, connector = stage
    connector.publish(SLOW)
    gateway.ask(1, listener=1)
    gateway.ask(2, listener=2)
    gateway.until("finished 1")
    gateway.ask(3, listener=1)
    gateway.until("finished 3")
    assert gateway.noted == ["started 1", "finished 1", "started 3", "finished 3"]
    gateway.release(1)
    gateway.until("finished 2")
    assert gateway.noted[4:] == ["started 2", "finished 2"]


def test_while_the_codec_is_behind_a_newcomer_waits(stage):
    """Who speaks goes on: its second segment, asked for last, comes first."""
    gateway, connector = stage
    connector.publish(BEHIND)
    gateway.ask(1, listener=1)
    gateway.ask(2, listener=2)
    gateway.until("finished 1")
    gateway.ask(3, listener=1)
    gateway.until("finished 3")
    assert "started 2" not in gateway.noted
    connector.publish(FAST)
    gateway.until("finished 2")


def test_with_time_for_all_all_are_taken_on(stage):
    gateway, connector = stage
    connector.publish(FAST)
    for number in (1, 2, 3):
        gateway.ask(number, listener=number)
    for number in (1, 2, 3):
        gateway.until(f"finished {number}")
