"""The fast AR: the codes of one frame for the rows of a step, with keys and values that are fresh for every frame.

Shapes: B rows of a step, C slow width, Q codebooks, S codes, H query heads, K key/value heads, D head width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inference.dual_ar import DualAR
from inference.flat import FlatStack, attend_few
from inference.sampling import SamplingRows, sample
from inference.transformer import turns_at


class FastAR:
    """Owns the keys and values, [layers, B, K, Q, D], and views of them for each codebook."""

    def __init__(self, model: DualAR, width: int):
        """`width`: B."""
        config, weight = model.config, model.norm.weight
        self._model, self._width, self._books = model, width, config.num_codebooks
        self._heads = config.fast_n_local_heads
        self._stack = FlatStack(model.fast_layers)
        shape = (config.n_fast_layer, width, config.fast_n_local_heads, config.num_codebooks, config.fast_head_dim)
        self._keys, self._values = (torch.zeros(shape, dtype=weight.dtype, device=weight.device) for _ in range(2))
        places = torch.arange(config.num_codebooks, device=weight.device)
        self._turns = turns_at(model.fast_rope, places[:, None])  # [Q, 1, 1, D/2]
        self._turns_of_two = turns_at(model.fast_rope, places[:2].repeat(width)[None])[0]  # [2B, 1, D/2]

    def __call__(self, hidden: Tensor, semantic: Tensor, noise: Tensor, parameters: SamplingRows) -> Tensor:
        """Slow hidden [B, C], semantic codes [B], uniform noise [B, Q − 1, S] -> the frames' codes int64 [B, Q]."""
        model, codes = self._model, [semantic]
        for book in range(1, self._books):
            embedded = model.fast_embeddings(codes[-1])
            if book == 1:  # positions 0 and 1 are one pass: position 0's logits are not needed
                x = torch.stack((model.fast_input(hidden), embedded), dim=1).flatten(0, 1)
                x = self._stack(x, self._turns_of_two, self._attend_two)[1::2]
            else:
                x = self._stack(embedded, self._turns[book], self._attend_one(book))
            codes.append(sample(model.fast_output(model.fast_norm(x)), parameters, noise[:, book - 1]))
        return torch.stack(codes, dim=1)

    def _attend_two(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Positions 0 and 1 of each row, q [2B, H, D], k and v [2B, K, D] -> [B, 2, K, H / K, D]."""
        keys, values = self._keys[layer], self._values[layer]
        keys[:, :, :2] = k.view(self._width, 2, self._heads, -1).transpose(1, 2)
        values[:, :, :2] = v.view(self._width, 2, self._heads, -1).transpose(1, 2)
        grouped = q.view(self._width, 2, self._heads, -1, q.shape[-1])
        second = attend_few(grouped[:, 1].flatten(0, 1), keys[:, :, :2].flatten(0, 1), values[:, :, :2].flatten(0, 1))
        second = second.view(grouped[:, 1].shape)
        first = values[:, :, :1].expand_as(second)  # it sees nothing but itself
        return torch.stack((first, second), dim=1)

    def _attend_one(self, place: int):
        """The next position of each row, q [B, H, D], k and v [B, K, D] -> [B · K, H / K, D]."""

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = self._keys[layer], self._values[layer]
            keys[:, :, place], values[:, :, place] = k, v
            grouped = q.reshape(self._width * self._heads, -1, q.shape[-1])
            keys, values = keys.flatten(0, 1), values.flatten(0, 1)
            return attend_few(grouped, keys[:, : place + 1], values[:, : place + 1])

        return attend
