"""The real stages in their processes, on a small checkpoint with random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from checkpoints import write_checkpoint
from parity import DATA

from gateway.engine.engine import Engine
from gateway.engine.stream import EngineStream
from inference.messages import Sampling, Submit

TEXT = "hello world this is a small test"
PUBLISHED = DATA / "seed_deploy.yaml"
OURS = Path(__file__).parents[1] / "deploy" / "audio8_tts.yaml"
EXTRA = "connectors__connector_of_shared_memory__extra__"


@pytest.fixture(scope="session")
def directory(tmp_path_factory) -> Path:
    """The checkpoint."""
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture
def engine(directory, tmp_path):
    """A function that makes an engine from a deploy file with changes; every stream runs to its `max_new_tokens`."""

    def make(deploy: Path = PUBLISHED, **changes) -> Engine:
        return Engine(str(directory), deploy_file(tmp_path / "deploy.yaml", deploy, **changes), "cpu", "warning")

    return make


def deploy_file(file: Path, base: Path, **changes) -> Path:
    """Write a deploy file: `base` with changes, `stages__0__devices="0,1"`, and no stream ends by itself."""
    values = yaml.safe_load(base.read_text())
    for path, value in {"ignore_eos": True, **changes}.items():
        target = values
        *parents, key = path.split("__")
        for parent in parents:
            target = target[int(parent) if parent.isdecimal() else parent]
        target[key] = value
    file.write_text(yaml.safe_dump(values))
    return file


def submit(
    engine: Engine, frames: int, seed: int = 1, voice: str | None = "ada", listener: int | None = None, **more
) -> EngineStream:
    """Speak so many frames, by default for a listener of its own."""
    listener = engine.next_listener() if listener is None else listener
    sampling = Sampling(seed=seed, max_new_tokens=frames)
    return engine.submit(Submit(engine.next_stream_id(), TEXT, sampling, listener, voice=voice, **more))


async def heard(stream: EngineStream) -> tuple[list[int], np.ndarray]:
    """Frames of each chunk that had any, and all samples."""
    chunks = [chunk async for chunk in stream]
    assert [chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    sizes = [len(chunk.samples) // 2048 for chunk in chunks]
    assert [chunk.first_frame for chunk in chunks] == [sum(sizes[:i]) for i in range(len(sizes))]
    return [size for size in sizes if size], np.concatenate([chunk.samples for chunk in chunks])
