"""A stack of blocks as five kernels a block, for the rows of a step.  `inference/flat.py` says what they compute.

Shapes: R rows, C width, H query heads, K key/value heads, D head width, I inner width of the feed-forward part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from inference.cuda.attention import QUERIES, attend_kernel
from inference.cuda.launches import Tile, Tiles, block
from inference.cuda.products import add_kernel, gate_kernel, qkv_kernel
from inference.flat import FlatBlock
from inference.transformer import TransformerShape

_WIDEST = 4096  # of vectors that a program holds whole


def fits(shape: TransformerShape) -> bool:
    """Whether the kernels can run such a stack."""
    grouped = shape.n_head // shape.n_local_heads <= QUERIES
    return not shape.qk_norm and grouped and shape.head_dim % 16 == 0 and shape.dim <= _WIDEST


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Where the keys and values of a stack are: [layers, slots, K, positions, D] each, and the rotations of the
    positions, float32 [positions, D / 2, 2]."""

    keys: Tensor
    values: Tensor
    rope: Tensor


class KernelStack:
    """Blocks of one shape over one memory, for at most `rows` rows."""

    def __init__(self, layers: nn.ModuleList, shape: TransformerShape, memory: Memory, rows: int, tiles: Tiles):
        self._blocks, self._shape = [_row_by_row(FlatBlock.of(layer)) for layer in layers], shape
        self._memory, self._tiles = memory, tiles
        like, positions = self._blocks[0].wqkv, memory.keys.shape[3]
        self._part = min(tiles.part, max(16, block(positions)))
        self._parts = -(-positions // self._part)
        heads, keys = shape.n_head, shape.n_local_heads
        self._queries, self._seen = (like.new_empty(rows, heads, shape.head_dim) for _ in range(2))
        self._inner = like.new_empty(rows, shape.intermediate_size)
        cells = (rows, keys, self._parts, QUERIES)
        wide = {"dtype": torch.float32, "device": like.device}
        self._sums = torch.empty((*cells, shape.head_dim), **wide)
        self._weights, self._peaks = (torch.empty(cells, **wide) for _ in range(2))
        self._counters = torch.zeros((rows, keys), dtype=torch.int32, device=like.device)

    def __call__(self, x: Tensor, slots: Tensor, positions: Tensor) -> None:
        """x [R, C] through the stack, in place; its rows are at `positions` int64 [R] of `slots` int64 [R]."""
        for index, each in enumerate(self._blocks):
            self._attention(index, each, x, slots, positions)
            self._feed_forward(each, x)

    def _attention(self, index: int, each: FlatBlock, x: Tensor, slots: Tensor, positions: Tensor) -> None:
        shape, tiles, memory = self._shape, self._tiles, self._memory
        heads, keys, dim, max_len = shape.n_head, shape.n_local_heads, shape.head_dim, memory.keys.shape[3]
        rows, pairs = len(x), min(tiles.qkv.rows, dim // 2)
        tiles.launch(
            qkv_kernel, ((heads + 2 * keys) * dim // (2 * pairs),),
            x, each.attention_norm.weight, each.wqkv, _or(each.qkv_bias, x), memory.rope, slots, positions,
            self._queries, memory.keys[index], memory.values[index], max_len, shape.norm_eps,
            R=rows, C=shape.dim, BLOCK_C=block(shape.dim), H=heads, K=keys, D=dim,
            BIASED=each.qkv_bias is not None, PAIRS=pairs, warps=tiles.qkv.warps,
        )  # fmt: skip
        tiles.launch(
            attend_kernel, (rows, keys, self._parts),
            self._queries, memory.keys[index], memory.values[index], slots, positions, self._seen,
            self._sums, self._weights, self._peaks, self._counters, max_len, dim**-0.5,
            H=heads, K=keys, D=dim, BLOCK_D=block(dim), P=self._part, PARTS=self._parts, G=QUERIES,
            warps=tiles.attend_warps,
        )  # fmt: skip
        self._add(self._seen, each.wo, each.o_bias, x, tiles.out)

    def _feed_forward(self, each: FlatBlock, x: Tensor) -> None:
        shape, tile = self._shape, self._tiles.gate
        self._tiles.launch(
            gate_kernel, (-(-shape.intermediate_size // tile.rows),),
            x, each.ffn_norm.weight, each.w1, each.w3, self._inner, shape.norm_eps,
            R=len(x), C=shape.dim, BLOCK_C=block(shape.dim), N=shape.intermediate_size, BLOCK_N=tile.rows,
            warps=tile.warps,
        )  # fmt: skip
        self._add(self._inner, each.w2, None, x, self._tiles.down)

    def _add(self, y: Tensor, weight: Tensor, bias: Tensor | None, x: Tensor, tile: Tile) -> None:
        """x += weight y + bias."""
        outputs, inputs = weight.shape
        columns = min(tile.columns or block(inputs), block(inputs))
        self._tiles.launch(
            add_kernel, (-(-outputs // tile.rows),), y, weight, _or(bias, x), x,
            R=len(x), C=inputs, BLOCK_C=columns, N=outputs, BLOCK_N=tile.rows, BIASED=bias is not None,
            warps=tile.warps,
        )  # fmt: skip


def _row_by_row(each: FlatBlock) -> FlatBlock:
    """Matrices as the kernels read them; on a GPU `DualAR.freeze` leaves them so, and nothing is copied."""
    matrices = {name: getattr(each, name).contiguous() for name in ("wqkv", "wo", "w1", "w2", "w3")}
    return replace(each, **matrices)


def _or(bias: Tensor | None, instead: Tensor) -> Tensor:
    """A kernel takes some tensor where it has no bias to read."""
    return instead if bias is None else bias
