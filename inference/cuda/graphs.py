"""CUDA graphs: work that is recorded once and then launched as a whole."""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch
from torch import Tensor

_ONE_AT_A_TIME = threading.Lock()  # a capture begins with a wait for the whole device, which would break another one
_WARM_UPS = 2  # runs before a recording: kernels are compiled and libraries take their memory


class GraphError(RuntimeError):
    """A graph could not be captured."""


def new_pool() -> tuple[int, int]:
    """Memory for graphs of one device that never run at the same time."""
    return torch.cuda.graph_pool_handle()


class Graph:
    """`work`, which reads and writes the same memory each time and asks nothing of the device."""

    def __init__(self, work: Callable[[], object], pool: tuple[int, int]):
        """On the thread's current device.  `pool`: see `new_pool`.  Runs the work some times.

        Raises GraphError.
        """
        self._graph = torch.cuda.CUDAGraph()
        try:
            with _ONE_AT_A_TIME:
                self._capture(work, pool)
        except Exception as error:
            raise GraphError(
                f"enforce_eager: no CUDA graph could be captured on this device; true runs without ({error})"
            ) from error

    def _capture(self, work: Callable[[], object], pool: tuple[int, int]) -> None:
        now = torch.cuda.current_stream()
        stream = torch.cuda.Stream(priority=now.priority)  # a graph's kernels keep that of their capture
        stream.wait_stream(now)
        with torch.inference_mode(), torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                work()
            stream.synchronize()
            # Another thread may use the device meanwhile: with both stages in one process it does.
            with torch.cuda.graph(self._graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
                work()
        now.wait_stream(stream)

    def launch(self) -> None:
        """Put all of it on the current stream."""
        self._graph.replay()


def put(values: Tensor, where: Tensor) -> None:
    """Copy `values`, in the host's memory, to the device without waiting for it."""
    where.copy_(values.pin_memory(), non_blocking=True)


def fetch(values: Tensor) -> tuple[Tensor, torch.cuda.Event]:
    """Begin to copy `values` to the host -> where they will be when the event has happened."""
    host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    host.copy_(values, non_blocking=True)
    event = torch.cuda.Event()
    event.record()
    return host, event
