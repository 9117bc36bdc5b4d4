"""A training step as one CUDA graph: a small model's step is otherwise bound by the launches of its kernels."""

from __future__ import annotations

from collections.abc import Callable

import torch


class Replay:
    """Calls `step` as it is on a CPU; on a GPU records it once, after some real calls, and replays it.

    `step` takes no arguments, reads inputs of fixed shape that others write in place, and never waits for the device.
    Its result is what the recorded call returned: tensors that each replay overwrites.
    """

    WARMUPS = 3

    def __init__(self, step: Callable, enabled: bool):
        self._step, self._enabled = step, enabled
        self._graph: torch.cuda.CUDAGraph | None = None
        self._result = None
        self._calls = 0

    def __call__(self):
        if not self._enabled:
            return self._step()
        if self._graph is None:
            return self._warm() if self._calls < self.WARMUPS else self._record()
        self._graph.replay()
        return self._result

    def _warm(self):
        """A real call on a side stream, as recording asks for."""
        self._calls += 1
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            result = self._step()
        torch.cuda.current_stream().wait_stream(stream)
        return result

    def _record(self):
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._result = self._step()
        self._graph.replay()  # recording ran nothing
        return self._result
