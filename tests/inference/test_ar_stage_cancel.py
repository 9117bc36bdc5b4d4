"""Once stage 0 has a cancel, no step that starts contains that stream, and its slot is free for another."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from running_stage import running_stage

from inference.ar_stage import ARStage
from inference.channel import Unframer, frame
from inference.messages import Cancel, Credit, Failed, Finished, Release, Sampling, Started, Submit

SLOTS = 6


class WatchedStage(ARStage):
    """Notes, in the order of its own thread, which messages it has handled and which slots each step was given."""

    def __init__(self, *arguments: object) -> None:
        self.cancelled: set[int] = set()
        self.late: list[int] = []
        self.steps = 0
        super().__init__(*arguments)
        self._runner.launch = self._watch(self._runner.launch)

    def _handle(self, message: object) -> None:
        super()._handle(message)
        if isinstance(message, Cancel):
            self.cancelled.add(message.stream_id)

    def _watch(self, launch):
        def watched(sequences):
            self.steps += 1
            of_slot = {id(stream.sequence): number for number, stream in self._streams.items()}
            running = [of_slot.get(id(sequence)) for sequence in sequences]
            self.late += [number for number in running if number is None or number in self.cancelled]
            return launch(sequences)

        return watched


@pytest.fixture(params=[False, True], ids=["read_at_once", "async_scheduling"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[WatchedStage, socket.socket]]:
    """A stage that runs in a thread, and the gateway's end of its channel."""
    with running_stage(WatchedStage, tmp_path, max_num_streams=SLOTS, async_scheduling=request.param) as (
        watched,
        channel,
        _,
    ):
        yield watched, channel


def test_no_step_contains_a_cancelled_stream(stage):
    """300 streams, more than there are slots, cancelled while they wait, at their prefill, between frames, and late."""
    watched, gateway = stage
    rng, unframer, live, started, finished = random.Random(0), Unframer(), [], set(), set()

    def read_until(condition) -> None:
        while not condition():
            for message in unframer.feed(gateway.recv(1 << 16)):
                assert not isinstance(message, Failed), message
                if isinstance(message, (Started, Finished)):
                    (started if isinstance(message, Started) else finished).add(message.stream_id)

    for number in range(300):
        sampling = Sampling(seed=number, max_new_tokens=rng.choice([2, 20, 100]))
        gateway.sendall(frame(Submit(number, "hello world this is a small test", sampling, number, voice="ada")))
        live.append(number)
        if rng.random() < 0.5:
            seen = len(started)
            read_until(lambda seen=seen: len(started) > seen or not set(live) - started - finished)
        paused = rng.choice(live)
        gateway.sendall(frame(Credit(paused, False)))
        while len(live) > rng.choice([2, 5, 12]):
            number = live.pop(rng.randrange(len(live)))
            gateway.sendall(frame(Cancel(number)) + frame(Release(number)))
        gateway.sendall(frame(Credit(paused, True)))
    for number in live:
        gateway.sendall(frame(Cancel(number)))
    gateway.sendall(frame(Submit(1000, "hello", Sampling(max_new_tokens=3), 1000)))
    read_until(lambda: 1000 in finished)
    assert watched.late == [] and watched.steps > 100
    assert len(watched.cancelled) == 300 and 1000 in started
