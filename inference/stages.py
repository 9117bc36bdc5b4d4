"""Runs stages in this process, each in a thread of its own, until the gateway closes their channels."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import torch

from inference.ar_stage import ARStage
from inference.channel import ChannelClosed, StageChannel
from inference.checkpoint import Checkpoint, CheckpointError
from inference.codec_stage import CodecStage
from inference.connector import SharedMemoryConnector
from inference.deploy import DeployConfig, StageConfig
from inference.device import DeviceError, limit_device_memory, memory_peak, stage_device, use_own_stream
from inference.messages import Beat, StageReady, StageStopped

log = logging.getLogger("audio8.worker")
_STAGES = {0: ARStage, 1: CodecStage}
_DOWNLOAD_S = 6 * 3600.0  # a checkpoint may have to come from the hub, by a slow line
_LOADING_S = 900.0  # gigabytes from a slow disk, and the first calls


@dataclass(frozen=True, slots=True)
class Place:
    """Where the stages of this process belong.

    `connector`: its file descriptors; `model`: a directory or hub id, None for the embedded voice; `device`: auto, cpu
    or cuda; `replica`: whose place in `devices` they take.
    """

    deploy: DeployConfig
    connector: tuple[int, int, int]
    model: str | None
    device: str
    replica: int


def run_stages(channels: Sequence[tuple[int, int]], place: Place) -> bool:
    """`channels`: (stage_id, file descriptor).  False if a stage could not start or broke; the gateway was told why."""
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // (2 * place.deploy.replicas)))  # all stages share the machine
    stages = [_config(stage_id, place) for stage_id, _ in channels]
    limit_device_memory(place.device, stages, place.replica)
    with ThreadPoolExecutor(len(channels), thread_name_prefix="stage") as threads:
        return all(threads.map(lambda channel: _serve(*channel, place), channels))


def _serve(stage_id: int, fd: int, place: Place) -> bool:
    """Load, say ready, run until the channel closes.  False if that failed."""
    channel = StageChannel(socket.socket(fileno=fd))
    connector = SharedMemoryConnector.attach(place.connector, place.deploy.connector.get_sleep_s)
    try:
        channel.send(Beat(stage_id, _DOWNLOAD_S))
        checkpoint = Checkpoint.open(place.model)
        channel.send(Beat(stage_id, _LOADING_S))
        device = stage_device(place.device, _config(stage_id, place), place.replica)
        use_own_stream(device, urgent=stage_id == 0)  # a step holds up all listeners, a decode one chunk
        stage = _STAGES[stage_id](checkpoint, place.deploy, channel, connector, device)
        log.info("stage %d of replica %d is ready on %s%s", stage_id, place.replica, device, memory_peak(device))
        info = replace(checkpoint.info(), max_seq_len=place.deploy.ar.max_model_len)  # no request gets more positions
        channel.send(StageReady(stage_id, device, info))
        with contextlib.ExitStack() as at_end:
            at_end.callback(_tell_peak, stage_id, device)
            stage.run()
    except ChannelClosed:
        return True
    except (CheckpointError, DeviceError) as error:  # not a fault of ours: the gateway says it in one line
        return _tell(channel, StageStopped(stage_id, str(error)))
    except Exception as error:
        log.exception("stage %d broke", stage_id)
        return _tell(channel, StageStopped(stage_id, f"{type(error).__name__}: {error}"))
    finally:
        connector.close()


def _tell_peak(stage_id: int, device: str) -> None:
    log.info("stage %d ends%s", stage_id, memory_peak(device))


def _config(stage_id: int, place: Place) -> StageConfig:
    return (place.deploy.ar, place.deploy.codec)[stage_id]


def _tell(channel: StageChannel, message: StageStopped) -> bool:
    try:
        channel.send(message)
    except ChannelClosed:
        log.info("nobody is left to be told")
    return False
