"""The keys and values of resident sequences, and how a step's queries see them.

Shapes: B rows of a step, N slots, P positions, K key/value heads, G query heads a key/value head, D head width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from inference.config import ArkttsConfig
from inference.flat import FlatAttend, attend_few
from inference.transformer import Attend


@dataclass(frozen=True, slots=True, eq=False)
class PrefixKV:
    """Keys and values of a prompt's prefix, [layers, K, P, D] each."""

    keys: Tensor
    values: Tensor

    @property
    def positions(self) -> int:
        """P."""
        return self.keys.shape[2]


class KVSlots:
    """Owns the memory: `keys` and `values`, [layers, N, K, max_len, D] each."""

    def __init__(self, config: ArkttsConfig, slots: int, max_len: int, like: Tensor):
        """`like`: a tensor of the type and on the device that they shall have."""
        shape = (config.n_layer, slots, config.n_local_heads, max_len, config.head_dim)
        self.keys, self.values = (torch.zeros(shape, dtype=like.dtype, device=like.device) for _ in range(2))
        self.max_len = max_len
        grouped = (config.n_local_heads, config.n_head // config.n_local_heads, config.head_dim)
        self._nothing = torch.zeros(grouped, dtype=like.dtype, device=like.device)  # what a row without a sequence sees

    def snapshot(self, slot: int, length: int) -> PrefixKV:
        """A copy of the first `length` positions of a slot."""
        return PrefixKV(self.keys[:, slot, :, :length].clone(), self.values[:, slot, :, :length].clone())

    def restore(self, slot: int, prefix: PrefixKV) -> None:
        """Put a snapshot at the start of a slot."""
        length = prefix.positions
        self.keys[:, slot, :, :length], self.values[:, slot, :, :length] = prefix.keys, prefix.values

    def attend_prompt(self, slot: int, start: int, end: int) -> Attend:
        """Queries at positions start … end - 1 of a slot, whose keys and values are written first, see all before."""
        places = torch.arange(end, device=self.keys.device)
        mask = places <= places[start:, None]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = self.keys[layer, slot], self.values[layer, slot]
            keys[:, start:end], values[:, start:end] = k[0], v[0]
            return F.scaled_dot_product_attention(
                q, keys[None, :, :end], values[None, :, :end], attn_mask=mask, enable_gqa=q.shape[1] != k.shape[1]
            )

        return attend

    def attend_padded(self, slot: Tensor, start: Tensor, count: Tensor, size: int) -> Attend:
        """`attend_prompt` for the first `count` of `size` queries, at positions start, start + 1, … of a slot; the
        keys and values of the others go to the last slot, which holds no sequence.  All int64 [] on the device.

        Every shape is fixed and nothing is asked of the device: the whole slot is read, whatever it holds.
        """
        place = torch.arange(size, device=self.keys.device)
        real = place < count
        at = self.places(
            torch.where(real, slot, self.keys.shape[1] - 1), torch.where(real, start + place, place)
        )  # [size * K]
        everything = torch.arange(self.max_len, device=place.device)
        mask = everything <= (start + place)[:, None]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            self._write(layer, at, k[0].transpose(0, 1), v[0].transpose(0, 1))
            keys, values = self.keys[layer].index_select(0, slot[None]), self.values[layer].index_select(0, slot[None])
            return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=q.shape[1] != k.shape[1])

        return attend

    def attend_own(self, slots: list[int], ends: list[int], at: Tensor, width: int) -> FlatAttend:
        """The first rows of a step hold the slots, which see their first `ends` positions; rows behind them, up to
        `width`, see nothing.  `at`: see `places`.

        Each row by itself, over just its own positions: its sum does not know the other rows' lengths.
        """
        head_dim = self.keys.shape[-1]
        seen = [
            (self.keys[:, slot, :, :end].unbind(), self.values[:, slot, :, :end].unbind())
            for slot, end in zip(slots, ends, strict=True)
        ]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            self._write(layer, at, k[: len(slots)], v[: len(slots)])
            rows = [
                attend_few(q[row].view(k.shape[1], -1, head_dim), keys[layer], values[layer])
                for row, (keys, values) in enumerate(seen)
            ]
            return torch.stack(rows + [self._nothing] * (width - len(rows)))

        return attend

    def attend_masked(self, rows: Tensor, lengths: Tensor) -> FlatAttend:
        """Rows of the slots `rows` int64 [B] write at and see up to position `lengths` int64 [B], both on the device.

        Every shape is fixed and nothing is asked of the device: whole slots are read, whatever they hold.
        """
        at = self.places(rows, lengths)
        seen = (torch.arange(self.max_len, device=rows.device) <= lengths[:, None])[:, None, None]  # [B, 1, 1, P]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            self._write(layer, at, k, v)
            grouped = q.reshape(len(q), k.shape[1], -1, q.shape[-1])
            return F.scaled_dot_product_attention(
                grouped, self.keys[layer][rows], self.values[layer][rows], attn_mask=seen
            )

        return attend

    def places(self, slots: Tensor, lengths: Tensor) -> Tensor:
        """Where the next keys and values of the slots [n] go in one layer's, counted in heads of positions: [n * K]."""
        heads = self.keys.shape[2]
        first = (slots[:, None] * heads + torch.arange(heads, device=slots.device)) * self.max_len
        return (first + lengths[:, None]).view(-1)

    def _write(self, layer: int, at: Tensor, k: Tensor, v: Tensor) -> None:
        head_dim = self.keys.shape[-1]
        self.keys[layer].view(-1, head_dim).index_copy_(0, at, k.reshape(-1, head_dim))
        self.values[layer].view(-1, head_dim).index_copy_(0, at, v.reshape(-1, head_dim))
