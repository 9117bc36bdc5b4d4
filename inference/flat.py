"""A stack of blocks as a step runs it: one position of each row, flat activations, weights bound once.

What `transformer.run_blocks` computes, with fewer operations around the matrix products: with a few rows they take as
long as the products.

Shapes: N rows, C width, H query heads, K key/value heads, D head width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inference.transformer import Block, RMSNorm, rotate

_IGNORED = torch.zeros(1, 1, 1)  # the summand of a product that has none

# (layer index, q [N, H, D], k [N, K, D], v [N, K, D]) -> [N, H, D], or anything that holds as much in that order.
FlatAttend = Callable[[int, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class FlatBlock:
    """The parts of one block without layer scales."""

    attention_norm: RMSNorm
    wqkv: Tensor
    qkv_bias: Tensor | None
    q_norm: RMSNorm | None
    k_norm: RMSNorm | None
    wo: Tensor
    o_bias: Tensor | None
    ffn_norm: RMSNorm
    w1: Tensor
    w3: Tensor
    w2: Tensor

    @classmethod
    def of(cls, block: Block) -> FlatBlock:
        """Shares the block's weights, which must stay where they are."""
        attention, feed_forward = block.attention, block.feed_forward
        return cls(
            block.attention_norm,
            attention.wqkv.weight,
            attention.wqkv.bias,
            attention.q_norm if attention.qk_norm else None,
            attention.k_norm if attention.qk_norm else None,
            attention.wo.weight,
            attention.wo.bias,
            block.ffn_norm,
            feed_forward.w1.weight,
            feed_forward.w3.weight,
            feed_forward.w2.weight,
        )


def attend_few(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """q [M, G, D] over keys and values [M, P, D] -> [M, G, D], for few queries; M: rows times key/value heads.

    In float32 on a CPU two products and a softmax take half the time of the fused kernel; other types need that for
    its precision.
    """
    if q.is_cuda or q.dtype is not torch.float32:
        return F.scaled_dot_product_attention(q[None], keys[None], values[None])[0]
    scores = torch.baddbmm(_IGNORED, q, keys.transpose(1, 2), beta=0, alpha=q.shape[-1] ** -0.5)
    return torch.bmm(scores.softmax(dim=-1), values)


class FlatStack:
    """Blocks of one shape."""

    def __init__(self, layers: nn.ModuleList):
        self._blocks = [FlatBlock.of(layer) for layer in layers]
        self._heads, self._keys, _ = layers[0].attention.heads
        self._head_dim = layers[0].attention.head_dim

    def __call__(self, x: Tensor, turns: Tensor, attend: FlatAttend) -> Tensor:
        """x [N, C] through the stack.  `turns`: complex rotations of the rows' positions, [N, 1, D/2]."""
        heads, all_heads = self._heads, self._heads + 2 * self._keys
        for index, block in enumerate(self._blocks):
            qkv = F.linear(block.attention_norm(x), block.wqkv, block.qkv_bias).view(-1, all_heads, self._head_dim)
            qk, v = qkv[:, : heads + self._keys], qkv[:, heads + self._keys :]
            if block.q_norm is not None:
                qk = torch.cat((block.q_norm(qk[:, :heads]), block.k_norm(qk[:, heads:])), dim=1)
            qk = rotate(qk, turns)
            y = attend(index, qk[:, :heads], qk[:, heads:], v)
            x = x + F.linear(y.reshape(len(x), -1), block.wo, block.o_bias)
            n = block.ffn_norm(x)
            x = x + F.linear(F.silu(F.linear(n, block.w1)).mul_(F.linear(n, block.w3)), block.w2)
        return x
