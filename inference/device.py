"""Which device a stage runs on, and what it may take there."""

from __future__ import annotations

import logging
from collections import defaultdict

import torch
from torch import nn

from inference.deploy import StageConfig
from inference.memory import host_memory

log = logging.getLogger("audio8.device")

_HIGH, _LOW = -5, 0  # priorities of CUDA streams; what a device does not have is taken as its highest


class DeviceError(ValueError):
    """The device that a stage was told to run on does not exist."""


def stage_device(choice: str, stage: StageConfig, replica: int) -> str:
    """`choice` auto | cpu | cuda; auto: the accelerator of the deploy file's id where there is one, else the CPU.

    Raises DeviceError if the id does not exist.
    """
    if choice == "cpu" or (choice == "auto" and not torch.cuda.is_available()):
        return "cpu"
    device_id = stage.device_ids[replica]
    if device_id >= torch.cuda.device_count():
        raise DeviceError(f"devices: there is no CUDA device {device_id}, {torch.cuda.device_count()} are visible")
    return f"cuda:{device_id}"


def device_memory(device: str, stage: StageConfig) -> int:
    """Bytes in all, divided by the replicas of the stage there; on a CPU those of the machine, or the container's."""
    if device == "cpu":
        return host_memory() // len(stage.device_ids)
    sharing = stage.device_ids.count(torch.device(device).index)
    return torch.cuda.get_device_properties(device).total_memory // sharing


def check_usable(error: Exception) -> None:
    """Raise `error` if it leaves the device useless for this process (an illegal access, a failed assertion): whatever
    runs there later fails too, and only a new process helps.  A lack of memory is none of these."""
    if isinstance(error, torch.AcceleratorError):
        raise error


def use_own_stream(device: str, urgent: bool) -> None:
    """Let all that this thread launches on a CUDA device run beside what other threads launch; where both want the
    device, the urgent one's kernels are placed first."""
    if device != "cpu":
        torch.cuda.set_device(device)
        torch.cuda.set_stream(torch.cuda.Stream(device, priority=_HIGH if urgent else _LOW))


def memory_peak(device: str) -> str:
    """What this process has taken of a CUDA device at most, in words; '' for a CPU."""
    if device == "cpu":
        return ""
    allocated, reserved = torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device)
    return f", memory at most {allocated / 2**30:.2f} GiB used and {reserved / 2**30:.2f} GiB reserved in this process"


def weight_bytes(model: nn.Module) -> int:
    """What the parameters of a model take."""
    return sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())


def limit_device_memory(choice: str, stages: list[StageConfig], replica: int) -> None:
    """Let this process allocate no more on its accelerators than its stages' shares (gpu_memory_utilization)."""
    shares: dict[int, float] = defaultdict(float)
    for stage in stages:
        device_id = stage.device_ids[replica]
        shares[device_id] += stage.memory_utilization / stage.device_ids.count(device_id)
    if choice != "cpu" and torch.cuda.is_available():
        for device_id, share in shares.items():
            if device_id < torch.cuda.device_count():  # one that does not exist is refused by its stage
                torch.cuda.set_per_process_memory_fraction(min(1.0, share), device_id)
