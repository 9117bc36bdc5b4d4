"""How kernels are launched: sizes of blocks, and whether a kernel may begin before the one before it has ended."""

from __future__ import annotations

from dataclasses import dataclass

import triton


@dataclass(frozen=True, slots=True)
class Tile:
    """Of a kernel that multiplies: rows of the matrix a program has, columns it holds at once (0: all), warps."""

    rows: int
    warps: int
    columns: int = 0


@dataclass(frozen=True, slots=True)
class Tiles:
    """Of each product.  `qkv` counts pairs of rows; `gate` has two matrices; `attend`: positions of a part.

    `overlap`: programmatic dependent launch, which loads a kernel's weights while the one before it still runs.
    """

    qkv: Tile = Tile(rows=4, warps=4)
    out: Tile = Tile(rows=8, warps=4)
    gate: Tile = Tile(rows=8, warps=4)
    down: Tile = Tile(rows=4, warps=4, columns=1024)
    head: Tile = Tile(rows=16, warps=4)
    part: int = 128
    attend_warps: int = 4
    draw_warps: int = 8
    overlap: bool = False

    def launch(
        self, kernel: triton.JITFunction, grid: tuple[int, ...], *arguments, warps: int = 4, **constants
    ) -> None:
        """Put `kernel` on the current stream."""
        options = {"launch_pdl": True} if self.overlap else {}  # the interpreter knows no such option
        kernel[grid](*arguments, **constants, PDL=self.overlap, num_warps=warps, **options)


def block(size: int) -> int:
    """The block that holds `size`: a power of two."""
    return triton.next_power_of_2(size)
