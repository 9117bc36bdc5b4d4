"""What a frame begins and ends with: embeddings of the last frame, the fast AR's first inputs, the next step's state.

Shapes: R rows, Q codebooks, C width, S semantic codes, W frames of the repetition window.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from inference.cuda.products import load_vector, rms_norm


@triton.jit
def embed_kernel(
    rows, columns, lengths, tokens, codes, x, positions,
    BEGIN: tl.constexpr, S: tl.constexpr, Q: tl.constexpr, C: tl.constexpr, BLOCK_C: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """`DualAR.embed` of columns int64 [slots, Q + 1] of the slots `rows` -> x [R, C]; positions int64 [R] = lengths."""
    T: tl.constexpr = x.dtype.element_ty
    row, c = tl.program_id(0), tl.arange(0, BLOCK_C)
    if PDL:
        gdc_wait()
        gdc_launch_dependents()
    slot = tl.load(rows + row)
    column = columns + slot * (Q + 1)
    token = tl.load(column)
    total = tl.zeros((BLOCK_C,), tl.float32)
    if (token >= BEGIN) & (token < BEGIN + S):
        for book in tl.static_range(Q):
            total += load_vector(codes + (tl.load(column + 1 + book) + book * S) * C, C, BLOCK_C)
    embedded = load_vector(tokens + token * C, C, BLOCK_C) + total.to(T).to(tl.float32)
    tl.store(x + row * C + c, embedded.to(T), mask=c < C)
    tl.store(positions + row, tl.load(lengths + slot))


@triton.jit
def begin_kernel(
    hidden, gain, made, embeddings, first, stride, second, eps,
    BOOKS: tl.constexpr, C: tl.constexpr, BLOCK_C: tl.constexpr, F: tl.constexpr, BLOCK_F: tl.constexpr,
    NORMED: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """The fast AR's inputs: hidden [R, C], normed if the model does so, to the rows of `first`, `stride` apart; the
    embeddings [S, F] of made[:, 1] to every other row of `second` [2R, F]."""
    T: tl.constexpr = hidden.dtype.element_ty
    row, c, f = tl.program_id(0), tl.arange(0, BLOCK_C), tl.arange(0, BLOCK_F)
    g = load_vector(gain, C, BLOCK_C)
    if PDL:
        gdc_wait()
        gdc_launch_dependents()
    h = load_vector(hidden + row * C, C, BLOCK_C)
    if NORMED:
        h = rms_norm(h, g, eps, C, T)
    tl.store(first + row * stride + c, h.to(T), mask=c < C)
    code = tl.load(made + row * (BOOKS + 1) + 1)
    tl.store(second + (2 * row + 1) * F + f, tl.load(embeddings + code * F + f, mask=f < F), mask=f < F)


@triton.jit
def advance_kernel(
    rows, made, columns, lengths, windows, begun, said, padding,
    BEGIN: tl.constexpr, S: tl.constexpr, Q: tl.constexpr, BLOCK_Q: tl.constexpr, W: tl.constexpr,
    BLOCK_W: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """`SlotState.advance`; the slot `padding` stays as it is."""
    row, q, w = tl.program_id(0), tl.arange(0, BLOCK_Q), tl.arange(0, BLOCK_W)
    if PDL:
        gdc_wait()
        gdc_launch_dependents()
    slot = tl.load(rows + row)
    if slot != padding:
        code = tl.load(made + row * (Q + 1) + 1)
        frame = tl.load(made + row * (Q + 1) + 1 + q, mask=q < Q)
        tl.store(columns + slot * (Q + 1), code + BEGIN)
        tl.store(columns + slot * (Q + 1) + 1 + q, frame, mask=q < Q)
        tl.store(lengths + slot, tl.load(lengths + slot) + 1)
        if tl.load(begun + slot) != 0:  # the published window starts after the first frame, which never enters it
            later = tl.load(windows + slot * W + w + 1, mask=w < W - 1, other=0)
            tl.debug_barrier()  # all are read before one is written
            tl.store(windows + slot * W + w, tl.where(w == W - 1, code, later), mask=w < W)
        tl.store(begun + slot, 1)
        tl.store(said + slot * (S + 1) + code, 1)
