"""The pre-norm decoder block that slow AR, fast AR and the codec's transformers have in common.

Shapes: B rows, T positions, C width, H query heads, K key/value heads, D head width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# (layer index, q [B, H, T, D], k [B, K, T, D], v [B, K, T, D]) -> [B, H, T, D].  Whoever runs a transformer decides by
# this function what its queries see: a whole sequence, a KV slot, a window with history.
Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class TransformerShape:
    """Widths of one stack of blocks."""

    dim: int
    n_layer: int
    n_head: int
    n_local_heads: int
    head_dim: int
    intermediate_size: int
    norm_eps: float
    qkv_bias: bool = False
    qk_norm: bool = False
    o_bias: bool = False
    layer_scale: bool = False


def rope_table(positions: int, head_dim: int, base: float) -> Tensor:
    """Cosine and sine of position * base^(-2j/D), float32 [positions, D/2, 2].

    Cosine and sine are rounded to bfloat16, as the published model's tables are; the order of operations is theirs too,
    since a float64 table differs in the last bfloat16 bit.
    """
    inverse = 1.0 / (base ** (torch.arange(0, head_dim, 2)[: head_dim // 2].float() / head_dim))
    angles = torch.outer(torch.arange(positions), inverse)
    turns = torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turns).to(torch.bfloat16).float()


def turns_at(table: Tensor, positions: Tensor) -> Tensor:
    """Rotations of `positions` [B or 1, T] as complex64 [B or 1, T, 1, D/2], for `run_blocks`."""
    return torch.view_as_complex(table[positions].float())[:, :, None]


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Interleaved rotary embedding: pairs (2j, 2j+1) of x [B, T, heads, D] turned by `turns` [B or 1, T, 1, D/2]."""
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


class RMSNorm(nn.Module):
    """x / rms(x) in float32, cast back, then times the weight."""

    def __init__(self, dim: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        # Written out, with few operations: on a CPU `F.rms_norm` takes longer for the few rows of a step.
        wide = x.float()
        length = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
        scale = length.square().mul_(1 / x.shape[-1]).add_(self.eps).rsqrt_()
        return (wide * scale).to(x.dtype) * self.weight


class LayerScale(nn.Module):
    """Times a gain a channel."""

    def __init__(self, dim: int):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((dim,), 1e-2))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class Attention(nn.Module):
    """Grouped-query attention with rotary positions."""

    def __init__(self, shape: TransformerShape):
        super().__init__()
        self.heads = (shape.n_head, shape.n_local_heads, shape.n_local_heads)
        self.head_dim = shape.head_dim
        self.wqkv = nn.Linear(shape.dim, sum(self.heads) * shape.head_dim, bias=shape.qkv_bias)
        self.wo = nn.Linear(shape.n_head * shape.head_dim, shape.dim, bias=shape.o_bias)
        if shape.qk_norm:
            self.q_norm = RMSNorm(shape.head_dim, shape.norm_eps)
            self.k_norm = RMSNorm(shape.head_dim, shape.norm_eps)
        self.qk_norm = shape.qk_norm

    def forward(self, x: Tensor, turns: Tensor, attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
        heads, keys, _ = self.heads
        qk, v = self.wqkv(x).unflatten(-1, (-1, self.head_dim)).split((heads + keys, keys), dim=-2)  # [B, T, heads, D]
        if self.qk_norm:
            q, k = qk.split((heads, keys), dim=-2)
            qk = torch.cat((self.q_norm(q), self.k_norm(k)), dim=-2)
        q, k = rotate(qk, turns).split((heads, keys), dim=-2)
        y = attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        return self.wo(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """SwiGLU: w2(silu(w1 x) * w3 x)."""

    def __init__(self, dim: int, intermediate_size: int):
        super().__init__()
        self.w1 = nn.Linear(dim, intermediate_size, bias=False)
        self.w3 = nn.Linear(dim, intermediate_size, bias=False)
        self.w2 = nn.Linear(intermediate_size, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    """h = x + attention(norm(x)); h + feed_forward(norm(h)); each branch scaled where the stack has layer scales."""

    def __init__(self, shape: TransformerShape):
        super().__init__()
        self.attention = Attention(shape)
        self.feed_forward = FeedForward(shape.dim, shape.intermediate_size)
        self.ffn_norm = RMSNorm(shape.dim, shape.norm_eps)
        self.attention_norm = RMSNorm(shape.dim, shape.norm_eps)
        self.attention_layer_scale = LayerScale(shape.dim) if shape.layer_scale else nn.Identity()
        self.ffn_layer_scale = LayerScale(shape.dim) if shape.layer_scale else nn.Identity()

    def forward(self, x: Tensor, turns: Tensor, attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
        h = x + self.attention_layer_scale(self.attention(self.attention_norm(x), turns, attend))
        return h + self.ffn_layer_scale(self.feed_forward(self.ffn_norm(h)))


def run_blocks(layers: nn.ModuleList, x: Tensor, turns: Tensor, attend: Attend) -> Tensor:
    """x [B, T, C] through a stack.  `turns`: complex rotations of the positions, [B or 1, T, 1, D/2]."""
    for index, layer in enumerate(layers):
        x = layer(x, turns, lambda q, k, v, index=index: attend(index, q, k, v))
    return x


def attend_causal(_layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Every position sees itself and all before it, nothing is kept."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
