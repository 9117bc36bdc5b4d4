"""The codec's causal window-attention transformer, run piece by piece.

Shapes: B rows, C channels, T new positions, K key/value heads, D head width, W past positions kept.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inference.convolution import History
from inference.transformer import Block, RMSNorm, TransformerShape, rope_table, run_blocks, turns_at

MOST_POSITIONS = 16384  # that have rotations; whoever runs a stream piece by piece sees to it


class WindowTransformer(nn.Module):
    """Blocks in which a position sees itself and the `window` − 1 positions before it.

    Positions are absolute: the bfloat16 rotation table is not shift-invariant, so a window that counted from its own
    start would not equal one pass over the whole.  A stream keeps, for each layer, its last window − 1 keys and values.
    """

    def __init__(self, shape: TransformerShape, window: int, rope_base: float):
        super().__init__()
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape.n_layer))
        self.norm = RMSNorm(shape.dim, shape.norm_eps)
        self.shape, self.past = shape, window - 1
        self.register_buffer("rope", rope_table(MOST_POSITIONS, shape.head_dim, rope_base), persistent=False)

    def forward(self, x: Tensor, history: History) -> Tensor:
        """x [B, C, T] -> [B, C, T]."""
        start = history.recall(x.shape[0], 1, 1, x.new_zeros(1, dtype=torch.int64))  # [B, 1, 1] positions seen so far
        positions = start[:, 0] + torch.arange(x.shape[-1], device=x.device)  # [B, T]
        history.keep(start + x.shape[-1])
        mask = self._mask(positions)

        def attend(_layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            k, v = self._with_past(k, history), self._with_past(v, history)
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=q.shape[1] != k.shape[1])

        y = run_blocks(self.layers, x.transpose(1, 2), turns_at(self.rope, positions), attend)
        return self.norm(y).transpose(1, 2)

    def _with_past(self, x: Tensor, history: History) -> Tensor:
        """x [B, K, T, D] with the past W positions in front."""
        kept = history.recall(x.shape[0], self.shape.n_local_heads, self.past * self.shape.head_dim, x)
        x = torch.cat((kept.unflatten(-1, (self.past, self.shape.head_dim)), x), dim=2)
        history.keep(x[:, :, x.shape[2] - self.past :].flatten(2))
        return x

    def _mask(self, positions: Tensor) -> Tensor:
        """[B, 1, T, W + T], true where the query may look."""
        past = positions[:, :1] - torch.arange(self.past, 0, -1, device=positions.device)
        keys = torch.cat((past, positions), dim=1)[:, None]
        queries = positions[:, :, None]
        return ((keys >= 0) & (keys <= queries) & (keys >= queries - self.past))[:, None]
