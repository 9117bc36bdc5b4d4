"""One frame of the model as some three hundred kernels: what `inference/frame.py` computes, in fewer and faster steps.

Shapes: B rows of a step, C slow width, F fast width, Q codebooks, S semantic codes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from inference.config import ArkttsConfig
from inference.cuda.draws import code_kernel, noise_kernel, semantic_kernel
from inference.cuda.ends import advance_kernel, begin_kernel, embed_kernel
from inference.cuda.launches import Tiles, block
from inference.cuda.products import head_kernel
from inference.cuda.stack import KernelStack, Memory, fits
from inference.dual_ar import DualAR, fast_shape, slow_shape
from inference.kv import KVSlots
from inference.noise import FrameNoise
from inference.slots import SlotState

MOST_ROWS = 8  # beyond, products take longer to compute than their weights to read, and plain operations are as good
_NOISE_BLOCK = 256  # of Philox blocks a program


def takes(config: ArkttsConfig, width: int) -> bool:
    """Whether the kernels can run such a model."""
    return width <= MOST_ROWS and fits(slow_shape(config)) and fits(fast_shape(config))


def fill_noise(rows: Tensor, keys: Tensor, lengths: Tensor, noise: Tensor, tiles: Tiles) -> None:
    """The next frame's noise float32 [B, size] of the slots `rows`; see `noise_kernel`."""
    count, size = noise.shape
    grid = (count, -(-size // (8 * _NOISE_BLOCK)))
    tiles.launch(noise_kernel, grid, rows, keys, lengths, noise, SIZE=size, BLOCK=_NOISE_BLOCK)


class KernelFrame:
    """Owns the activations and the fast AR's keys and values."""

    def __init__(
        self,
        model: DualAR,
        width: int,
        state: SlotState,
        kv: KVSlots,
        noise: FrameNoise,
        ignore_eos: bool,
        tiles: Tiles,
    ):
        """`width`: B; `ignore_eos`: the end token is never chosen."""
        config, like = model.config, model.norm.weight
        self._model, self._state, self._kv, self._noise, self._tiles = model, state, kv, noise, tiles
        self._semantic_head, self._fast_head = model.semantic_head.contiguous(), model.fast_output.weight.contiguous()
        self._choices = config.codebook_size + (0 if ignore_eos else 1)
        slow, fast, books = slow_shape(config), fast_shape(config), config.num_codebooks
        memory = Memory(kv.keys, kv.values, model.rope)
        self._slow = KernelStack(model.layers, slow, memory, width, tiles)
        shape = (fast.n_layer, width, fast.n_local_heads, books, fast.head_dim)
        memory = Memory(*(like.new_zeros(shape) for _ in range(2)), model.fast_rope)
        self._fast = KernelStack(model.fast_layers, fast, memory, 2 * width, tiles)
        own = torch.arange(width, device=like.device)
        self._own, self._own_twice = own, own.repeat_interleave(2)
        self._places = torch.arange(books, device=like.device).repeat_interleave(width).view(books, width)
        self._first_places = torch.arange(2, device=like.device).repeat(width)
        self._hidden, self._lengths = like.new_empty(width, config.dim), torch.empty_like(own)
        self._pairs, self._input = like.new_empty(2 * width, config.fast_dim), like.new_empty(width, config.fast_dim)
        self._projected = not isinstance(model.fast_project_in, nn.Identity)
        self._unprojected = like.new_empty(width, config.dim)
        wide = {"dtype": torch.float32, "device": like.device}
        self._semantic_logits = torch.empty((width, config.codebook_size + 1), **wide)
        self._logits = torch.empty((width, config.codebook_size), **wide)

    def __call__(self, rows: Tensor, noise: Tensor, made: Tensor) -> None:
        """The slots `rows` int64 [B], uniform noise [B, size] -> made int64 [B, Q + 1], as `Frame` gives it."""
        self._run_slow(rows)
        self._draw_semantic(rows, noise, made)
        self._begin_fast(made)
        for book in range(1, self._model.config.num_codebooks):
            self._run_fast(book)
            self._draw_code(book, rows, noise, made)
        self._advance(rows, made)

    def _run_slow(self, rows: Tensor) -> None:
        """-> `_hidden` [B, C] before the final norm."""
        model, state, config = self._model, self._state, self._model.config
        self._tiles.launch(
            embed_kernel, (len(rows),),
            rows, state.columns, state.lengths, model.embeddings.weight, model.codebook_embeddings.weight,
            self._hidden, self._lengths,
            BEGIN=config.semantic_begin_id, S=config.codebook_size, Q=config.num_codebooks, C=config.dim,
            BLOCK_C=block(config.dim),
        )  # fmt: skip
        self._slow(self._hidden, rows, self._lengths)

    def _draw_semantic(self, rows: Tensor, noise: Tensor, made: Tensor) -> None:
        state, config = self._state, self._model.config
        self._head(self._hidden, self._model.norm, self._semantic_head, self._semantic_logits)
        self._tiles.launch(
            semantic_kernel, (len(rows),),
            self._semantic_logits, noise, rows, state.sampling, state.said.view(torch.uint8), state.windows, made,
            config.ras_temperature, config.ras_top_p,
            V=self._choices, BLOCK_V=block(self._choices), S=config.codebook_size, SIZE=self._noise.size,
            W=config.ras_window_size, BLOCK_W=block(config.ras_window_size), BOOKS=config.num_codebooks,
            warps=self._tiles.draw_warps,
        )  # fmt: skip

    def _begin_fast(self, made: Tensor) -> None:
        """-> `_pairs` [2B, F]: positions 0 and 1 of each row."""
        model, config = self._model, self._model.config
        first = self._unprojected if self._projected else self._pairs
        self._tiles.launch(
            begin_kernel, (len(made),),
            self._hidden, model.norm.weight, made, model.fast_embeddings.weight, first,
            config.dim if self._projected else 2 * config.dim, self._pairs, model.norm.eps,
            BOOKS=config.num_codebooks, C=config.dim, BLOCK_C=block(config.dim), F=config.fast_dim,
            BLOCK_F=block(config.fast_dim), NORMED=bool(config.norm_fastlayer_input),
        )  # fmt: skip
        if self._projected:
            self._pairs[::2] = model.fast_project_in(first)

    def _run_fast(self, book: int) -> None:
        """-> `_logits` of codebook `book`; positions 0 and 1 are one pass."""
        if book == 1:
            self._fast(self._pairs, self._own_twice, self._first_places)
            x = self._pairs[1::2]
        else:
            x = self._input
            self._fast(x, self._own, self._places[book])
        self._head(x, self._model.fast_norm, self._fast_head, self._logits)

    def _draw_code(self, book: int, rows: Tensor, noise: Tensor, made: Tensor) -> None:
        """-> made[:, book + 1], and `_input` of the next pass."""
        config = self._model.config
        self._tiles.launch(
            code_kernel, (len(rows),),
            self._logits, noise, rows, self._state.sampling, made,
            self._model.fast_embeddings.weight, self._input, book,
            V=config.codebook_size, BLOCK_V=block(config.codebook_size), FIRST=2 * self._noise.semantic,
            SIZE=self._noise.size, BOOKS=config.num_codebooks, C=config.fast_dim, BLOCK_C=block(config.fast_dim),
            warps=self._tiles.draw_warps,
        )  # fmt: skip

    def _advance(self, rows: Tensor, made: Tensor) -> None:
        state, config = self._state, self._model.config
        self._tiles.launch(
            advance_kernel, (len(rows),),
            rows, made, state.columns, state.lengths, state.windows, state.begun.view(torch.uint8),
            state.said.view(torch.uint8), state.padding,
            BEGIN=config.semantic_begin_id, S=config.codebook_size, Q=config.num_codebooks,
            BLOCK_Q=block(config.num_codebooks), W=config.ras_window_size, BLOCK_W=block(config.ras_window_size),
        )  # fmt: skip

    def _head(self, x: Tensor, norm: nn.Module, weight: Tensor, logits: Tensor) -> None:
        tile, (outputs, inputs) = self._tiles.head, weight.shape
        self._tiles.launch(
            head_kernel, (-(-outputs // tile.rows),), x, norm.weight, weight, logits, norm.eps, x.stride(0),
            R=len(x), C=inputs, BLOCK_C=block(inputs), N=outputs, BLOCK_N=tile.rows, warps=tile.warps,
        )  # fmt: skip
