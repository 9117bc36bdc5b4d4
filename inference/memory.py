"""How much memory a stage may take, and how many KV slots that makes."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


class OutOfBudget(ValueError):
    """The stage's share of memory does not hold what it needs."""


def host_memory() -> int:
    """Bytes of the machine's memory, or of the container's limit if that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in _CGROUP_LIMITS:
        if file.is_file() and (text := file.read_text().strip()).isdecimal():
            total = min(total, int(text))
    return total


def check_weights(total: int, utilization: float, weights: int) -> None:
    """Raises OutOfBudget, naming the share that would do, if stage 1's share of `total` bytes is below its weights."""
    if weights > total * utilization:
        raise OutOfBudget(
            f"stages[1].gpu_memory_utilization: {utilization} of {total / 2**30:.1f} GiB does not hold the codec's "
            f"weights ({weights / 2**30:.2f} GiB); at least {weights / total:.3f} is needed"
        )


def kv_slots(total: int, utilization: float, weights: int, slot: int, wanted: int) -> int:
    """KV slots, at most `wanted`, that fit beside the weights into the stage's share of `total` bytes.

    Raises OutOfBudget, naming the share that would do, if not even one fits.
    """
    fit = (int(total * utilization) - weights) // slot
    if fit < 1:
        need = (weights + slot) / total
        raise OutOfBudget(
            f"stages[0].gpu_memory_utilization: {utilization} of {total / 2**30:.1f} GiB does not hold the weights "
            f"({weights / 2**30:.2f} GiB) and one KV slot ({slot / 2**30:.2f} GiB); at least {need:.3f} is needed"
        )
    return min(fit, wanted)


def spare_slots(total: int, utilization: float, weights: int, slot: int, slots: int, wanted: int) -> int:
    """How many slots' worth of memory, at most `wanted`, the stage's share of `total` bytes holds besides `slots`."""
    return max(0, min(wanted, (int(total * utilization) - weights) // slot - slots))
