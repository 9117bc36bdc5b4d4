"""Stage 0 with the small checkpoint in a thread; the test is its gateway, and its stage 1."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import yaml
from checkpoints import write_checkpoint
from parity import DATA

from inference.ar_stage import ARStage
from inference.channel import ChannelClosed, StageChannel
from inference.checkpoint import Checkpoint
from inference.connector import SharedMemoryConnector
from inference.deploy import load_deploy_config


@contextlib.contextmanager
def running_stage(
    kind: type[ARStage], directory: Path, **stage_values: object
) -> Iterator[tuple[ARStage, socket.socket, SharedMemoryConnector]]:
    """The stage, the gateway's end of its channel, and the connector, which is emptied by the way."""
    values = yaml.safe_load((DATA / "seed_deploy.yaml").read_text())
    values["ignore_eos"] = True
    values["stages"][0] |= stage_values
    deploy_file = directory / "deploy.yaml"
    deploy_file.write_text(yaml.safe_dump(values))
    (directory / "model").mkdir()
    deploy = load_deploy_config(deploy_file)
    ours, theirs = socket.socketpair()
    connector = SharedMemoryConnector.create(deploy.connector.get_sleep_s)
    checkpoint = Checkpoint.open(str(write_checkpoint(directory / "model")))
    stage = kind(checkpoint, deploy, StageChannel(theirs), connector, "cpu")
    thread = threading.Thread(target=_run, args=(stage, connector))
    thread.start()
    ours.settimeout(10)
    yield stage, ours, connector
    ours.close()
    thread.join(10)
    theirs.close()
    connector.close()
    assert not thread.is_alive()


def _run(stage: ARStage, connector: SharedMemoryConnector) -> None:
    """As the worker does; stage 1's end of the connector is emptied by the way."""
    step = stage.step

    def step_and_drain() -> None:
        step()
        while connector.get() is not None:
            pass

    stage.step = step_and_drain
    try:
        stage.run()
    except ChannelClosed:
        pass
