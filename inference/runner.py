"""Runs the dual-AR model over KV slots: prefill, and the step that makes one frame for up to `width` sequences.

Shapes: B = width rows of a step, P positions, Q codebooks, K key/value heads, G query heads a key/value head, D head
width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from inference.dual_ar import DualAR
from inference.fast_ar import FastAR
from inference.flat import FlatStack, attend_few
from inference.messages import Sampling
from inference.noise import FrameNoise
from inference.sampling import FEW, SamplingRows, penalise, sample_semantic
from inference.sequence import Sequence, StepResult
from inference.slots import SlotState
from inference.transformer import turns_at


@dataclass(frozen=True, slots=True, eq=False)
class PrefixKV:
    """Keys and values of a prompt's prefix, [layers, K, P, D] each."""

    keys: Tensor
    values: Tensor

    @property
    def positions(self) -> int:
        """P."""
        return self.keys.shape[2]


class ARRunner:
    """Owns the KV slots' memory.  Not thread-safe; one step at a time.

    Every step has the same shape, `width` rows, whatever is running: a row's numbers do not depend on its neighbours.
    """

    def __init__(
        self,
        model: DualAR,
        width: int,
        slots: int,
        *,
        max_len: int | None = None,
        ignore_eos: bool = False,
        draw: Callable[[Sequence], np.ndarray] | None = None,
    ):
        """`max_len`: positions of a slot, the checkpoint's max_seq_len by default.  `ignore_eos`: the end token
        is never chosen, for measuring with random weights.  `draw`: the uniform noise of a sequence's next frame, by
        default a function of seed, segment and step."""
        config = model.config
        self.model, self.width, self.slots = model, width, slots
        self.max_len, self.books = max_len or config.max_seq_len, config.num_codebooks
        self.device, dtype = model.norm.weight.device, model.norm.weight.dtype
        self.noise = FrameNoise(config.codebook_size + 1, self.books, config.codebook_size)
        self._draw, self._ignore_eos = draw or self._drawn, ignore_eos
        shape = (config.n_layer, slots, config.n_local_heads, self.max_len, config.head_dim)
        self.keys, self.values = (torch.zeros(shape, dtype=dtype, device=self.device) for _ in range(2))
        grouped = (config.n_local_heads, config.n_head // config.n_local_heads, config.head_dim)
        self._nothing = torch.zeros(grouped, dtype=dtype, device=self.device)  # what a row without a sequence sees
        self._slow_stack, self._fast = FlatStack(model.layers), FastAR(model, width)
        self.state = SlotState(config, slots, self.device)
        self._noise = np.ones((width, self.noise.size), dtype=np.float32)  # of a step; rows without a sequence keep it

    def sequence(self, slot: int, packed: np.ndarray, length: int, sampling: Sampling, segment_index: int) -> Sequence:
        """Prefill what of `packed` [Q + 1, P] the slot does not hold yet (`length` positions), all but the last column,
        which is the first step's input."""
        self.check_length(packed)
        self.prefill(slot, packed[:, length:-1], length)
        last = packed.shape[1] - 1
        self.state.open(slot, packed[:, last], last, sampling)
        return Sequence(slot, last, sampling, segment_index)

    def check_length(self, packed: np.ndarray) -> None:
        """Raises ValueError if no frame would fit behind the prompt `packed` [Q + 1, P]."""
        if packed.shape[1] >= self.max_len:
            raise ValueError(
                f"the prompt takes {packed.shape[1]} of {self.max_len} positions, which leaves none to speak"
            )

    @torch.inference_mode()
    def prefill(self, slot: int, packed: np.ndarray, start: int) -> None:
        """Write keys and values of the columns `packed` [Q + 1, P] at positions start, start + 1, … of a slot."""
        if packed.shape[1] == 0:
            return
        end = start + packed.shape[1]
        positions = torch.arange(start, end, device=self.device)
        mask = torch.arange(end, device=self.device) <= positions[:, None]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = self.keys[layer, slot], self.values[layer, slot]
            keys[:, start:end], values[:, start:end] = k[0], v[0]
            return F.scaled_dot_product_attention(
                q, keys[None, :, :end], values[None, :, :end], attn_mask=mask, enable_gqa=q.shape[1] != k.shape[1]
            )

        columns = torch.from_numpy(np.ascontiguousarray(packed))[None].to(self.device)
        self.model.slow(self.model.embed(columns), positions[None], attend)

    def snapshot(self, slot: int, length: int) -> PrefixKV:
        """A copy of the first `length` positions of a slot."""
        return PrefixKV(self.keys[:, slot, :, :length].clone(), self.values[:, slot, :, :length].clone())

    def restore(self, slot: int, prefix: PrefixKV) -> None:
        """Put a snapshot at the start of a slot."""
        length = prefix.positions
        self.keys[:, slot, :, :length], self.values[:, slot, :, :length] = prefix.keys, prefix.values

    def room(self, sequence: Sequence) -> bool:
        """Whether another step may be launched: prompt and frames together fill at most the slot, and the sequence has
        asked for more frames."""
        return sequence.step < sequence.sampling.max_new_tokens and sequence.length + 1 < self.max_len

    def step(self, sequences: list[Sequence]) -> list[bool]:
        """One frame for each of at most `width` sequences, put to its `frames`; True where it found its end instead."""
        frames, ended = self.launch(sequences).read()
        for sequence, frame, end in zip(sequences, frames, ended, strict=True):
            if not end:
                sequence.frames.append(frame)
        return ended

    @torch.inference_mode()
    def launch(self, sequences: list[Sequence]) -> StepResult:
        """Start one step of at most `width` sequences.  It needs no result of the step before on the host.

        A sequence may be in it whose end is in a result that nobody has read: what it makes then has no meaning.
        """
        slots = [sequence.slot for sequence in sequences]
        slots += [self.state.padding] * (self.width - len(slots))
        rows = torch.tensor(slots, device=self.device)
        hidden = self._slow(sequences, rows)
        parameters = self._parameters(sequences, rows)
        normal, high, fast = self._draws(sequences)
        semantic = self._semantic(hidden, sequences, rows, parameters, normal, high)
        end = self.model.config.codebook_size
        codes = self._fast(hidden, semantic.clamp_max(end - 1), fast, parameters)
        self.state.advance(rows, codes)
        for sequence in sequences:
            sequence.length += 1
            sequence.step += 1
        return StepResult(tuple(sequences), torch.cat((semantic[:, None], codes), dim=1), end)

    def _slow(self, sequences: list[Sequence], rows: Tensor) -> Tensor:
        """-> hidden [B, C] before the final norm; rows without a sequence are padding."""

        count, head_dim = len(sequences), self.keys.shape[-1]
        at = self._flat_places(rows[:count])
        seen = [self._seen(sequence) for sequence in sequences]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            self.keys[layer].view(-1, head_dim).index_copy_(0, at, k[:count].reshape(-1, head_dim))
            self.values[layer].view(-1, head_dim).index_copy_(0, at, v[:count].reshape(-1, head_dim))
            # Each row by itself, over just its own positions: its sum does not know the other rows' lengths.
            rows = [
                attend_few(q[row].view(k.shape[1], -1, head_dim), keys[layer], values[layer])
                for row, (keys, values) in enumerate(seen)
            ]
            return torch.stack(rows + [self._nothing] * (self.width - len(rows)))

        embedded = self.model.embed(self.state.columns[rows][:, :, None])[:, 0]
        turns = turns_at(self.model.rope, self.state.lengths[rows][None])[0]
        return self._slow_stack(embedded, turns, attend)

    def _flat_places(self, slots: Tensor) -> Tensor:
        """Where the next keys and values of the slots [n] go in one layer's, counted in heads of positions: [n * K]."""
        heads = self.keys.shape[2]
        first = (slots[:, None] * heads + torch.arange(heads, device=self.device)) * self.max_len
        return (first + self.state.lengths[slots][:, None]).view(-1)

    def _seen(self, sequence: Sequence) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Keys and values of the positions that the next step sees, [K, P, D] of each layer."""
        end = sequence.length + 1
        return self.keys[:, sequence.slot, :, :end].unbind(), self.values[:, sequence.slot, :, :end].unbind()

    def _parameters(self, sequences: list[Sequence], rows: Tensor) -> SamplingRows:
        """Sampling parameters of the rows.  Nearly always few candidates suffice; sorting all takes far longer."""
        few = all(sequence.sampling.top_k <= FEW for sequence in sequences)
        return self.state.parameters(rows, FEW if few else self.model.config.codebook_size + 1)

    def _draws(self, sequences: list[Sequence]) -> tuple[Tensor, Tensor, Tensor]:
        """Uniform noise: normal and high [B, S + 1], fast [B, Q − 1, S]."""
        for row, sequence in enumerate(sequences):
            self._noise[row] = self._draw(sequence)
        normal, high, fast = (torch.from_numpy(part).to(self.device) for part in self.noise.split(self._noise))
        return normal, high, fast

    def _semantic(
        self,
        hidden: Tensor,
        sequences: list[Sequence],
        rows: Tensor,
        parameters: SamplingRows,
        normal: Tensor,
        high: Tensor,
    ) -> Tensor:
        """hidden [B, C], noise [B, S + 1] -> semantic codes [B]; the end token is `codebook_size`."""
        config = self.model.config
        logits = self.model.semantic_logits(self.model.norm(hidden))
        if self._ignore_eos:
            logits[:, -1] = -torch.inf
        if any(sequence.sampling.repetition_penalty != 1.0 for sequence in sequences):
            logits = penalise(logits, self.state.said[rows], parameters.penalty)
        ras = parameters.with_ras(config.ras_temperature, config.ras_top_p)
        return sample_semantic(logits, parameters, ras, normal, high, self.state.windows[rows])

    def _drawn(self, sequence: Sequence) -> np.ndarray:
        return self.noise.draw(sequence.sampling.seed, sequence.segment_index, sequence.step)
