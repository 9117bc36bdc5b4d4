"""Compiles what a frame of the published model launches, for Hopper, without a GPU.

    python tests/compile_kernels.py

Prints for each kernel its name, the bytes of registers that it spills, and its loads of 16 bytes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import torch
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

sys.path.insert(0, str(Path(__file__).parents[1]))

from inference.config import ArkttsConfig
from inference.cuda.frame import KernelFrame, fill_noise
from inference.cuda.launches import Tiles
from inference.dual_ar import DualAR
from inference.kv import KVSlots
from inference.noise import FrameNoise
from inference.slots import SlotState

HOPPER = GPUTarget("cuda", 90, 32)
TYPES = {torch.bfloat16: "bf16", torch.float32: "fp32", torch.int64: "i64", torch.int32: "i32", torch.uint8: "u8"}
WIDTH, SLOTS = 4, 16


@dataclass(frozen=True)
class Recorded(Tiles):
    """Keeps what it should launch, each kind once."""

    overlap: bool = True
    kinds: dict[tuple, tuple] = field(default_factory=dict)

    def launch(self, kernel, grid, *arguments, warps: int = 4, **constants) -> None:
        constants["PDL"] = self.overlap
        types = tuple(_type(argument) for argument in arguments)
        self.kinds[(kernel.__name__, types, warps, tuple(sorted(constants.items())))] = (
            kernel,
            types,
            warps,
            constants,
        )


def _type(argument: object) -> str:
    if isinstance(argument, torch.Tensor):
        return "*" + TYPES[argument.dtype]
    return "fp32" if isinstance(argument, float) else "i32"


def launches() -> list[tuple]:
    """Of one frame."""
    tiles = Recorded()
    with torch.device("meta"), torch.inference_mode():
        model = DualAR(ArkttsConfig()).to(torch.bfloat16).freeze()
        config = model.config
        state = SlotState(config, SLOTS, torch.device("meta"))
        kv = KVSlots(config, SLOTS + 1, config.max_seq_len, model.norm.weight)
        noise = FrameNoise(config.codebook_size + 1, config.num_codebooks, config.codebook_size)
        rows, draws = torch.zeros(WIDTH, dtype=torch.int64), torch.ones((WIDTH, noise.size))
        fill_noise(rows, torch.zeros((SLOTS + 1, 3), dtype=torch.int64), state.lengths, draws, tiles)
        frame = KernelFrame(model, WIDTH, state, kv, noise, False, tiles)
        frame(rows, draws, torch.zeros((WIDTH, config.num_codebooks + 1), dtype=torch.int64))
    return list(tiles.kinds.values())


def compile_one(kernel, types: tuple[str, ...], warps: int, constants: dict) -> triton.compiler.CompiledKernel:
    """As the first launch would; all memory is aligned to 16 bytes."""
    names = kernel.arg_names
    signature = dict(zip(names, types, strict=False)) | dict.fromkeys(constants, "constexpr")
    aligned = {(i,): [["tt.divisibility", 16]] for i, type_ in enumerate(types) if type_.startswith("*")}
    values = {(names.index(name),): value for name, value in constants.items()}
    return triton.compile(
        ASTSource(kernel, signature, constexprs=values, attrs=aligned), HOPPER, options={"num_warps": warps}
    )


def spilled(compiled: triton.compiler.CompiledKernel) -> int:
    """Bytes of local memory a thread."""

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()

        usage = subprocess.run(
            [knobs.nvidia.cuobjdump.path, "-res-usage", file.name], capture_output=True, text=True, check=True
        )
    return sum(int(found) for found in re.findall(r"(?:STACK|LOCAL):(\d+)", usage.stdout))


def main() -> None:
    """One line a kernel."""
    for kernel, types, warps, constants in launches():
        compiled = compile_one(kernel, types, warps, constants)
        wide = len(re.findall(r"ld\.global\S*\.v4\.b32", compiled.asm["ptx"]))
        print(kernel.__name__, spilled(compiled), wide)


if __name__ == "__main__":
    main()
