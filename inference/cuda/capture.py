"""Capturing of graphs, where two stages may load in threads of one process."""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch

_ONE_AT_A_TIME = threading.Lock()  # a capture begins with a wait for the whole device, which would break another one


def captured(work: Callable[[], None], pool: tuple[int, int] | None = None) -> Callable[[], None]:
    """`work` on fixed memory as a graph on the current stream, which keeps its priority -> what replays it.

    It is run once before, so that whatever is compiled or chosen at a first call is so by then.  Graphs of one `pool`
    share the memory of their intermediate results: they must be replayed one after the other.
    """
    with _ONE_AT_A_TIME:
        work()
        torch.cuda.current_stream().synchronize()
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.current_stream()
        with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            work()
    return graph.replay
