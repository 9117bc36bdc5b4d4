"""Runs the dual-AR model over KV slots: prefill, and the step that makes one frame for up to `width` sequences.

Shapes: B = width rows of a step, P positions, Q codebooks, K key/value heads, G query heads a key/value head, D head
width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from inference.dual_ar import DualAR
from inference.messages import Sampling
from inference.noise import FrameNoise
from inference.sampling import SamplingRows, sample, sample_semantic


@dataclass(slots=True, eq=False)
class Sequence:
    """One resident sequence.  `column` [Q + 1] is the input of its next step, at position `length` of its slot."""

    slot: int
    length: int
    column: np.ndarray
    sampling: Sampling
    segment_index: int
    window: np.ndarray
    step: int = 0
    frames: list[np.ndarray] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class PrefixKV:
    """Keys and values of a prompt's prefix, [layers, K, P, D] each."""

    keys: Tensor
    values: Tensor


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
        is never chosen, for measuring with random weights.  `draw`: the exponential noise of a sequence's next frame;
        by default a function of seed, segment and step."""
        config = model.config
        self.model, self.width, self.slots = model, width, slots
        self.max_len, self.books = max_len or config.max_seq_len, config.num_codebooks
        self.device, dtype = model.norm.weight.device, model.norm.weight.dtype
        self.noise = FrameNoise(config.codebook_size + 1, self.books, config.codebook_size)
        self._draw, self._ignore_eos = draw or self._drawn, ignore_eos
        shape = (config.n_layer, slots, config.n_local_heads, self.max_len, config.head_dim)
        self.keys, self.values = (torch.zeros(shape, dtype=dtype, device=self.device) for _ in range(2))
        fast = (config.n_fast_layer, width, config.fast_n_local_heads, self.books, config.fast_head_dim)
        self._fast_keys, self._fast_values = (torch.zeros(fast, dtype=dtype, device=self.device) for _ in range(2))
        self._sampling: dict[tuple, tuple[SamplingRows, SamplingRows]] = {}

    def sequence(self, slot: int, packed: np.ndarray, length: int, sampling: Sampling, segment_index: int) -> Sequence:
        """Prefill what of `packed` [Q + 1, P] the slot does not hold yet (`length` positions), all but the last column,
        which is the first step's input."""
        self.check_length(packed)
        self.prefill(slot, packed[:, length:-1], length)
        window = np.full(self.model.config.ras_window_size, -1, dtype=np.int64)
        return Sequence(slot, packed.shape[1] - 1, packed[:, -1], sampling, segment_index, window)

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
        length = prefix.keys.shape[2]
        self.keys[:, slot, :, :length], self.values[:, slot, :, :length] = prefix.keys, prefix.values

    def room(self, sequence: Sequence) -> bool:
        """Whether another frame may follow: prompt and frames together fill at most the slot."""
        return sequence.length + 1 < self.max_len

    @torch.inference_mode()
    def step(self, sequences: list[Sequence]) -> list[bool]:
        """One frame for each of at most `width` sequences; True where the sequence found its end instead.

        A frame goes to `Sequence.frames` as uint16 [Q].
        """
        hidden = self._slow(sequences)
        semantic, fast_noise, rows = self._semantic(hidden, sequences)
        end = self.model.config.codebook_size
        codes = self._fast(hidden, semantic.clamp_max(end - 1), fast_noise, rows).cpu().numpy()
        ended = [int(code) == end for code in semantic.tolist()[: len(sequences)]]
        for sequence, frame, last in zip(sequences, codes, ended, strict=False):
            sequence.length += 1
            sequence.step += 1
            if last:
                continue
            if sequence.step > 1:  # the published window starts after the first frame, which never enters it
                sequence.window = np.append(sequence.window[1:], frame[0])
            sequence.frames.append(frame.astype(np.uint16))
            sequence.column = np.concatenate((frame[:1] + self.model.config.semantic_begin_id, frame))
        return ended

    def _slow(self, sequences: list[Sequence]) -> Tensor:
        """-> hidden [B, C] before the final norm; rows without a sequence are padding."""
        columns = torch.zeros(self.width, self.books + 1, dtype=torch.int64)
        positions = torch.zeros(self.width, dtype=torch.int64)
        for row, sequence in enumerate(sequences):
            columns[row] = torch.from_numpy(sequence.column)
            positions[row] = sequence.length

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            y = torch.zeros_like(q)
            for row, sequence in enumerate(sequences):
                # Each row by itself, over just its own positions: its sum does not know the other rows' lengths.
                keys, values = self.keys[layer, sequence.slot], self.values[layer, sequence.slot]
                at = sequence.length
                keys[:, at], values[:, at] = k[row, :, 0], v[row, :, 0]
                grouped = q[row].reshape(1, k.shape[1], -1, q.shape[-1])  # [1, K, G, D]: heads as queries, no repeats
                seen = F.scaled_dot_product_attention(grouped, keys[None, :, : at + 1], values[None, :, : at + 1])
                y[row] = seen.reshape(q.shape[1:])
            return y

        embedded = self.model.embed(columns[:, :, None].to(self.device))
        return self.model.slow(embedded, positions[:, None].to(self.device), attend)[:, 0]

    def _semantic(self, hidden: Tensor, sequences: list[Sequence]) -> tuple[Tensor, Tensor, SamplingRows]:
        """-> semantic codes [B] (the end token is `codebook_size`), the fast draws' noise [B, Q − 1, S], parameters."""
        rows, ras = self._rows([sequence.sampling for sequence in sequences])
        noise = np.ones((self.width, self.noise.size), dtype=np.float32)
        window = np.full((self.width, self.model.config.ras_window_size), -1, dtype=np.int64)
        for row, sequence in enumerate(sequences):
            noise[row], window[row] = self._draw(sequence), sequence.window
        normal, high, fast = (torch.from_numpy(part).to(self.device) for part in self.noise.split(noise))
        logits = self.model.semantic_logits(self.model.norm(hidden))
        if self._ignore_eos:
            logits[:, -1] = -torch.inf
        return sample_semantic(logits, rows, ras, normal, high, torch.from_numpy(window).to(self.device)), fast, rows

    def _fast(self, hidden: Tensor, semantic: Tensor, noise: Tensor, rows: SamplingRows) -> Tensor:
        """hidden [B, C], semantic codes [B] -> the frames' codes int64 [B, Q]."""
        codes = [semantic]
        x = torch.stack((self.model.fast_input(hidden), self.model.fast_embeddings(semantic)), dim=1)
        for book in range(1, self.books):
            first = 0 if book == 1 else book  # positions 0 and 1 are one pass: position 0's logits are not needed
            logits = self.model.fast(x, first, self._attend_fast(first))[:, -1]
            codes.append(sample(logits, rows, noise[:, book - 1]))
            x = self.model.fast_embeddings(codes[-1])[:, None]
        return torch.stack(codes, dim=1)

    def _attend_fast(self, first: int) -> Callable[[int, Tensor, Tensor, Tensor], Tensor]:
        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            end = first + k.shape[2]
            keys, values = self._fast_keys[layer], self._fast_values[layer]
            keys[:, :, first:end], values[:, :, first:end] = k, v
            gqa = q.shape[1] != k.shape[1]
            if first == 0:
                return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=gqa)
            grouped = q.reshape(len(q), k.shape[1], -1, q.shape[-1])  # one query a head: heads as queries, no repeats
            seen = F.scaled_dot_product_attention(grouped, keys[:, :, :end], values[:, :, :end])
            return seen.reshape(q.shape)

        return attend

    def _drawn(self, sequence: Sequence) -> np.ndarray:
        return self.noise.draw(sequence.sampling.seed, sequence.segment_index, sequence.step)

    def _rows(self, samplings: list[Sampling]) -> tuple[SamplingRows, SamplingRows]:
        """Sampling parameters of the rows and those of their repetition-aware draw, kept for the next step."""
        values = tuple((s.temperature, s.top_k, s.top_p) for s in samplings)
        if values not in self._sampling:
            padded = [*values, *[(1.0, 1, 1.0)] * (self.width - len(values))]
            rows = SamplingRows.of(padded, self.device)
            config = self.model.config
            self._sampling = {values: (rows, rows.with_ras(config.ras_temperature, config.ras_top_p))}
        return self._sampling[values]
