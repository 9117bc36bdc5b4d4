"""One frame of the model for the rows of a step: slow AR, semantic code, fast AR, and what the next step reads.

A function of tensors whose shapes never change, in place where state moves on.  It asks nothing of the device, so a
CUDA graph can hold all of it.

Shapes: B rows of a step, C slow width, Q codebooks, S semantic codes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inference.dual_ar import DualAR
from inference.fast_ar import FastAR
from inference.flat import FlatAttend, FlatStack
from inference.noise import FrameNoise
from inference.sampling import SamplingRows, penalise, sample_semantic
from inference.slots import SlotState
from inference.transformer import turns_at


class Frame:
    """Owns the flat stacks of both models and the fast AR's keys and values."""

    def __init__(self, model: DualAR, width: int, state: SlotState, noise: FrameNoise, ignore_eos: bool):
        """`width`: B; `ignore_eos`: the end token is never chosen."""
        self._model, self._state, self._noise, self._ignore_eos = model, state, noise, ignore_eos
        self._slow_stack, self._fast = FlatStack(model.layers), FastAR(model, width)
        self._codes = model.config.codebook_size

    def __call__(self, rows: Tensor, noise: Tensor, attend: FlatAttend, candidates: int, penalised: bool) -> Tensor:
        """The slots `rows` int64 [B], uniform noise [B, size] -> int64 [B, Q + 1]: the semantic code, S where a row
        found its end, and the frame.

        `attend`: what the slow AR's queries see.  `candidates`: see `SamplingRows.of`.  `penalised`: whether a row may
        have a repetition penalty.
        """
        normal, high, fast = self._noise.split(noise)
        hidden = self.slow(rows, attend)
        parameters = self._state.parameters(rows, candidates)
        semantic = self._semantic(hidden, rows, parameters, normal, high, penalised)
        codes = self._fast(hidden, semantic.clamp_max(self._codes - 1), fast, parameters)
        self._state.advance(rows, codes)
        return torch.cat((semantic[:, None], codes), dim=1)

    def slow(self, rows: Tensor, attend: FlatAttend) -> Tensor:
        """-> hidden [B, C] before the final norm."""
        embedded = self._model.embed(self._state.columns[rows][:, :, None])[:, 0]
        turns = turns_at(self._model.rope, self._state.lengths[rows][None])[0]
        return self._slow_stack(embedded, turns, attend)

    def _semantic(
        self, hidden: Tensor, rows: Tensor, parameters: SamplingRows, normal: Tensor, high: Tensor, penalised: bool
    ) -> Tensor:
        """hidden [B, C], noise [B, S + 1] -> semantic codes [B]; the end token is S."""
        config = self._model.config
        logits = self._model.semantic_logits(self._model.norm(hidden))
        if self._ignore_eos:
            logits[:, -1] = -torch.inf
        if penalised:
            logits = penalise(logits, self._state.said[rows], parameters.penalty)
        ras = parameters.with_ras(config.ras_temperature, config.ras_top_p)
        return sample_semantic(logits, parameters, ras, normal, high, self._state.windows[rows])
