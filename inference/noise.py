"""Noise as a pure function of (seed, segment_index, step, draw, codebook)."""

from __future__ import annotations

import numpy as np
from torch import Tensor


class FrameNoise:
    """Uniform noise in (0, 1] for the draws of one frame.

    One Philox stream (Salmon et al. 2011) is keyed by (seed, segment_index); its 256-bit counter starts at the step, so
    that a frame's numbers depend on nothing that was drawn before.  They are laid out as draw *normal*, draw *high*,
    then one fast draw for each codebook from the second on.
    """

    def __init__(self, semantic: int, codebooks: int, codebook_size: int):
        """`semantic`: entries of the slow head; `codebooks`: Q; `codebook_size`: entries of the fast head."""
        self.semantic, self.fast_draws, self.codebook_size = semantic, codebooks - 1, codebook_size
        self.size = 2 * semantic + self.fast_draws * codebook_size

    def draw(self, seed: int, segment_index: int, step: int) -> np.ndarray:
        """float32 [size] in (0, 1]."""
        bits = np.random.Philox(key=np.array([seed, segment_index], dtype=np.uint64), counter=[0, 0, 0, step])
        return 1 - np.random.Generator(bits).random(self.size, dtype=np.float32)

    def split(self, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[B, size] -> normal [B, semantic], high [B, semantic], fast [B, fast_draws, codebook_size]."""
        fast = noise[:, 2 * self.semantic :].unflatten(1, (self.fast_draws, self.codebook_size))
        return noise[:, : self.semantic], noise[:, self.semantic : 2 * self.semantic], fast
