"""An error in a prefill, a step or a decode ends the streams that were in it, and no others; nothing stays held.

The stages are the real ones, in a thread; only the call of the model is made to fail.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from checkpoints import write_checkpoint
from real_engine import EXTRA, PUBLISHED, deploy_file

from inference.ar_stage import ARStage
from inference.channel import ChannelClosed, StageChannel, Unframer, frame
from inference.checkpoint import Checkpoint
from inference.codec_stage import CodecStage
from inference.connector import SharedMemoryConnector
from inference.deploy import load_deploy_config
from inference.messages import (
    ARReport,
    AudioChunk,
    Beat,
    CodecReport,
    Encode,
    Encoded,
    EncodeFailed,
    Failed,
    Finished,
    Keep,
    Reference,
    Sampling,
    Started,
    Submit,
)
from inference.records import CodesChunk, ProducerStarted, StreamAborted, StreamOpened

OUT_OF_MEMORY = torch.OutOfMemoryError("CUDA out of memory")
TEXT = "hello world this is a small test"


@dataclass
class Running:
    """A stage in its thread, seen from the gateway and from the other stage."""

    stage: ARStage | CodecStage
    connector: SharedMemoryConnector
    gateway: socket.socket
    broke: list[Exception]
    unframer: Unframer = field(default_factory=Unframer)
    heard: list[object] = field(default_factory=list)

    def submit(self, *stream_ids: int, frames: int) -> None:
        """All in one write."""
        requests = (Submit(i, TEXT, Sampling(seed=i, max_new_tokens=frames), i, voice="ada") for i in stream_ids)
        self.gateway.sendall(b"".join(map(frame, requests)))

    def put(self, record: object) -> None:
        """As stage 0."""
        while not self.connector.put(record):
            pass

    def until(self, condition: Callable[[object], bool], times: int = 1) -> list[object]:
        """What the stage says, up to the message that fulfils the condition for the so-manieth time."""
        said: list[object] = []
        while times:
            while not self.heard:
                self.heard += self.unframer.feed(self.gateway.recv(1 << 16))
            said.append(self.heard.pop(0))
            times -= condition(said[-1])
        return said


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Checkpoint:
    return Checkpoint.open(str(write_checkpoint(tmp_path_factory.mktemp("model"))))


@pytest.fixture
def run(checkpoint, tmp_path) -> Iterator[Callable]:
    """`with run(ARStage, **changes of the deploy file) as running`"""

    @contextmanager
    def running(kind: type, prepare: Callable = lambda stage: None, capacity: int = 1 << 20, **changes: object):
        deploy = load_deploy_config(deploy_file(tmp_path / "deploy.yaml", PUBLISHED, **changes))
        ours, theirs = socket.socketpair()
        ours.settimeout(20)
        connector = SharedMemoryConnector.create(deploy.connector.get_sleep_s, capacity)
        stage, broke = kind(checkpoint, deploy, StageChannel(theirs), connector, "cpu"), []
        prepare(stage)
        thread = threading.Thread(target=_run, args=(stage, broke))
        thread.start()
        try:
            yield Running(stage, connector, ours, broke)
        finally:
            ours.close()
            thread.join(20)
            theirs.close()
            connector.close()
            assert not thread.is_alive()

    return running


def _run(stage: ARStage | CodecStage, broke: list[Exception]) -> None:
    try:
        stage.run()
    except ChannelClosed:
        pass
    except Exception as error:
        broke.append(error)


def fail_at(owner: object, name: str, calls: set[int], error: Exception) -> None:
    """Let some calls of a method, counted from 1, raise."""
    real, count = getattr(owner, name), 0

    def method(*arguments, **named):
        nonlocal count
        count += 1
        if count in calls:
            raise error
        return real(*arguments, **named)

    setattr(owner, name, method)


def drained(connector: SharedMemoryConnector) -> list:
    return list(iter(connector.get, None))


def is_idle(message: object) -> bool:
    """A report of a stage that holds nothing."""
    if isinstance(message, ARReport):
        return not (message.slots_used or message.resident or message.waiting)
    return isinstance(message, CodecReport) and not (message.streams or message.backlog_frames)


@pytest.mark.parametrize("one_behind", [False, True], ids=["read_at_once", "async_scheduling"])
def test_a_failed_step_ends_its_streams_and_frees_their_slots(run, one_behind):
    changes = {"stages__0__async_scheduling": one_behind}
    with run(ARStage, lambda stage: fail_at(stage._runner, "launch", {12}, OUT_OF_MEMORY), **changes) as running:
        running.submit(1, 2, frames=100)
        failed = [m for m in running.until(lambda m: isinstance(m, Failed), times=2) if isinstance(m, Failed)]
        assert {(m.stream_id, m.code) for m in failed} == {(1, "engine_failed"), (2, "engine_failed")}
        assert "CUDA out of memory" in failed[0].message
        running.submit(*range(3, 9), frames=10)  # more than there are slots
        said = running.until(lambda m: isinstance(m, Finished), times=6)
        assert not any(isinstance(m, Failed) for m in said)
        running.until(is_idle)
        aborted = [record for record in drained(running.connector) if isinstance(record, StreamAborted)]
        assert sorted(record.stream_id for record in aborted) == [1, 2]
    assert not running.broke


def test_a_failed_prefill_ends_its_stream_alone(run):
    with run(ARStage, lambda stage: fail_at(stage._runner, "sequence", {2}, OUT_OF_MEMORY)) as running:
        running.submit(1, 2, 3, frames=30)
        said = running.until(lambda m: isinstance(m, Finished), times=2)
        assert [(m.stream_id, m.code) for m in said if isinstance(m, Failed)] == [(2, "engine_failed")]
        assert {m.stream_id for m in said if isinstance(m, Started)} == {1, 3}
        running.until(is_idle)
    assert not running.broke


@pytest.mark.parametrize("kind", [ARStage, CodecStage])
def test_a_device_that_is_lost_ends_the_stage(run, kind):
    """Its process starts anew; here nothing would ever work again."""
    lost = torch.AcceleratorError("CUDA error: device-side assert triggered")

    def prepare(stage) -> None:
        owner, name = (stage._runner, "launch") if kind is ARStage else (stage._decoder, "decode")
        fail_at(owner, name, {1}, lost)

    with run(kind, prepare) as running:
        if kind is ARStage:
            running.submit(1, frames=100)
        else:
            running.put(StreamOpened(1, None))
            running.put(CodesChunk(1, 0, np.zeros((10, 4), np.uint16), last=True))
        wait_for(lambda: running.broke)
    assert running.broke == [lost]


def test_a_failed_decode_ends_its_stream_alone(run):
    with run(CodecStage, lambda stage: fail_at(stage._decoder, "decode", {2}, OUT_OF_MEMORY)) as running:
        for stream_id in (1, 2, 3):
            running.put(StreamOpened(stream_id, None))
            running.put(CodesChunk(stream_id, 0, np.zeros((10, 4), np.uint16), last=False))
        said = running.until(lambda m: isinstance(m, AudioChunk) and m.stream_id == 3)
        assert [(m.stream_id, m.code) for m in said if isinstance(m, Failed)] == [(2, "engine_failed")]
        for stream_id in (1, 2, 3):  # 2 is gone, which stage 0 may not know yet
            running.put(CodesChunk(stream_id, 4, np.zeros((10, 6), np.uint16), last=True))
        said = running.until(lambda m: isinstance(m, AudioChunk) and m.stream_id == 3)
        assert [(m.stream_id, len(m.samples)) for m in said if isinstance(m, AudioChunk)] == [(1, 12288), (3, 12288)]
        running.until(is_idle)
    assert not running.broke


def test_streams_of_a_stage_0_that_died_end_with_it(run):
    """Neither their states nor their deadlines stay."""
    with run(CodecStage, **{f"{EXTRA}connector_get_max_wait_first_chunk": 30}) as running:
        for stream_id in (1, 2):
            running.put(StreamOpened(stream_id, None))
        running.put(ProducerStarted())
        running.put(StreamOpened(3, None))
        said = running.until(lambda m: isinstance(m, Failed))
        assert (said[-1].stream_id, said[-1].code) == (3, "stage_timeout")
        running.until(is_idle)
    assert not running.broke


def test_a_full_connector_holds_stage_0_back_and_loses_nothing(run):
    """It has room for about three chunks of ten."""
    with run(ARStage, capacity=1600) as running:
        running.submit(1, frames=200)
        seen: list = []
        running.until(lambda m: isinstance(m, Started))
        said = running.until(lambda m: isinstance(m, Beat), times=4)  # a second
        assert not any(isinstance(m, Finished) for m in said)
        wait_for(
            lambda: seen.extend(drained(running.connector)) or (isinstance(seen[-1], CodesChunk) and seen[-1].last)
        )
        finished = running.until(lambda m: isinstance(m, Finished))[-1]
        chunks = [record for record in seen if isinstance(record, CodesChunk)]
        np.testing.assert_array_equal(np.concatenate([chunk.codes for chunk in chunks], axis=1), finished.codes)
        assert finished.codes.shape[1] == 200
    assert not running.broke


def wait_for(condition: Callable[[], object], within_s: float = 20.0) -> None:
    turn = threading.Event()
    for _ in range(int(within_s / 0.01)):
        if condition():
            return
        turn.wait(0.01)
    raise AssertionError("it did not come about")


def test_a_failed_encode_is_told_and_the_next_recording_becomes_codes(run):
    """The second piece of the first recording fails; meanwhile a stream is decoded whole."""
    recordings = [Encode(number, np.full(6 * 2048, 0.1, np.float32)) for number in (1, 2)]
    with run(CodecStage, lambda stage: fail_at(stage._recordings._codec, "encode", {2}, OUT_OF_MEMORY)) as running:
        running.gateway.sendall(b"".join(map(frame, recordings)))
        running.put(ProducerStarted())
        running.put(StreamOpened(7, None))
        running.put(CodesChunk(7, 0, np.zeros((10, 4), np.uint16), last=True))
        said = running.until(lambda m: isinstance(m, Encoded | AudioChunk), times=2)
        assert [m for m in said if isinstance(m, EncodeFailed)] == [
            EncodeFailed(1, "the codec failed: CUDA out of memory")
        ]
        (encoded,) = [m for m in said if isinstance(m, Encoded)]
        assert encoded.request_id == 2 and encoded.codes.shape == (10, 6)
        (chunk,) = [m for m in said if isinstance(m, AudioChunk)]
        assert chunk.last and len(chunk.samples) == 4 * 2048
    assert running.broke == []


@pytest.mark.parametrize("failing", [set(), {1}], ids=["kept", "failed"])
def test_a_voice_is_kept_while_nobody_speaks_and_harms_nobody_if_that_fails(run, failing):
    kept = threading.Event()

    def prepare(stage: ARStage) -> None:
        fail_at(stage._prefiller, "keep", failing, OUT_OF_MEMORY)
        release = stage._steps.release
        stage._steps.release = lambda slot: (release(slot), kept.set())

    with run(ARStage, prepare) as running:
        running.gateway.sendall(frame(Keep(Reference("what was said", np.ones((10, 9), np.uint16)))))
        assert kept.wait(20)
        running.submit(*range(1, 6), frames=5)
        said = running.until(lambda m: isinstance(m, Finished), times=5)
        assert not any(isinstance(m, Failed) for m in said)
        running.until(is_idle)
    assert running.broke == []
