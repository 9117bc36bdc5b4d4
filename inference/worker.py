"""`python -m inference.worker`: runs one stage, or both in threads of one process, for the gateway that started it."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
import threading

import torch

from inference.ar_stage import ARStage
from inference.channel import ChannelClosed, StageChannel
from inference.checkpoint import Checkpoint, CheckpointError
from inference.codec_stage import CodecStage
from inference.connector import SharedMemoryConnector
from inference.deploy import DeployConfig, load_deploy_config
from inference.device import limit_device_memory, stage_device
from inference.messages import StageReady, StageStopped

log = logging.getLogger("audio8.worker")
_STAGES = {0: ARStage, 1: CodecStage}


def main() -> int:
    """Exit code 0 when the gateway has closed the channels, 1 if a stage could not start or broke."""
    options = _options()
    logging.basicConfig(level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s")
    deploy = load_deploy_config(options.deploy_config)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // (2 * deploy.replicas)))  # all stages share the machine
    stages = [(deploy.ar, deploy.codec)[stage_id] for stage_id, _ in options.stage]
    limit_device_memory(options.device, stages, options.replica)
    threads = [
        threading.Thread(target=_serve, args=(stage_id, fd, options, deploy), name=f"stage{stage_id}")
        for stage_id, fd in options.stage
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return int(_failed.is_set())


_failed = threading.Event()


def _serve(stage_id: int, fd: int, options: argparse.Namespace, deploy: DeployConfig) -> None:
    """Load, say ready, run until the channel closes."""
    channel = StageChannel(socket.socket(fileno=fd))
    connector = SharedMemoryConnector.attach(options.connector, deploy.connector.get_sleep_s)
    try:
        checkpoint = Checkpoint.open(options.model)
        device = stage_device(options.device, (deploy.ar, deploy.codec)[stage_id], options.replica)
        stage = _STAGES[stage_id](checkpoint, deploy, channel, connector, device)
        log.info("stage %d of replica %d is ready on %s", stage_id, options.replica, device)
        channel.send(StageReady(stage_id, device, checkpoint.info()))
        stage.run()
    except ChannelClosed:
        pass
    except CheckpointError as error:  # not a fault of ours: the gateway says it in one line
        _failed.set()
        _tell(channel, StageStopped(stage_id, str(error)))
    except Exception as error:
        log.exception("stage %d broke", stage_id)
        _failed.set()
        _tell(channel, StageStopped(stage_id, f"{type(error).__name__}: {error}"))
    finally:
        connector.close()


def _tell(channel: StageChannel, message: StageStopped) -> None:
    try:
        channel.send(message)
    except ChannelClosed:
        log.info("nobody is left to be told")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="inference.worker", description=__doc__)
    parser.add_argument(
        "--stage", action="append", type=_pair, required=True, help="stage_id:channel_fd; may be repeated"
    )
    parser.add_argument("--connector", type=_numbers, required=True, help="the connector's file descriptors, a:b:c")
    parser.add_argument("--replica", type=int, required=True, help="whose place in `devices` the stage takes")
    parser.add_argument("--deploy-config", required=True)
    parser.add_argument("--model", default=None, help="directory or hub id; the embedded voice by default")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--log-level", default="info")
    return parser.parse_args()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(":"))


def _pair(text: str) -> tuple[int, int]:
    stage_id, fd = _numbers(text)
    return stage_id, fd


if __name__ == "__main__":
    sys.exit(main())
