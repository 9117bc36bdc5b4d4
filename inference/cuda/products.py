"""Products of weight matrices with the few rows of a step, and what goes before and after them in one kernel each.

With so few rows a product takes as long as reading its weights does.  A program reads some of a matrix's rows once, in
wide loads, while nothing keeps it waiting (before `gdc_wait` where kernels overlap), then multiplies each row of the
step with them, one after the other: a row's sums know nothing of the other rows, nor how many there are.

Values are rounded to the weights' type where the plain operations round (`inference/flat.py`); sums are in float32.

Shapes: R rows, C width in, N rows of a matrix, H query heads, K key/value heads, D head width.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def load_vector(at, C: tl.constexpr, BLOCK_C: tl.constexpr):
    """[BLOCK_C] in float32, zeros behind C."""
    c = tl.arange(0, BLOCK_C)
    return tl.load(at + c, mask=c < C, other=0.0).to(tl.float32)


@triton.jit
def load_rows(weight, n, N: tl.constexpr, C: tl.constexpr, FIRST: tl.constexpr, BLOCK_C: tl.constexpr):
    """Columns FIRST … of the matrix's rows `n`, [rows, BLOCK_C], zeros outside."""
    c = FIRST + tl.arange(0, BLOCK_C)
    return tl.load(weight + n[:, None] * C + c[None, :], mask=(n[:, None] < N) & (c[None, :] < C), other=0.0)


@triton.jit
def rms_norm(x, gain, eps, C: tl.constexpr, T: tl.constexpr):
    """x and gain float32 [BLOCK_C] -> float32, rounded to T as `transformer.RMSNorm` does."""
    scale = tl.rsqrt(tl.sum(x * x, axis=0) * (1.0 / C) + eps)
    return ((x * scale).to(T).to(tl.float32) * gain).to(T).to(tl.float32)


@triton.jit
def multiply(w, n, T: tl.constexpr):
    """w [rows, BLOCK_C] times n float32 [BLOCK_C] -> float32 [rows], rounded to T."""
    return tl.sum(w.to(tl.float32) * n[None, :], axis=1).to(T).to(tl.float32)


@triton.jit
def qkv_kernel(
    x, gain, weight, bias, rope, slots, positions, queries, keys, values, max_len, eps,
    R: tl.constexpr, C: tl.constexpr, BLOCK_C: tl.constexpr, H: tl.constexpr, K: tl.constexpr, D: tl.constexpr,
    BIASED: tl.constexpr, PAIRS: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Norm, projection, rotary embedding; queries [R, H, D] are stored, keys and values go to their slots.

    A program makes PAIRS pairs (2j, 2j + 1) of one head; `rope` float32 [positions, D / 2, 2]; a row's keys and values
    go to `positions` of `slots`, int64 [R], in caches [slots, K, max_len, D].
    """
    T: tl.constexpr = weight.dtype.element_ty
    first = tl.program_id(0) * 2 * PAIRS
    head, d = first // D, first % D + 2 * tl.arange(0, PAIRS)
    even = first + 2 * tl.arange(0, PAIRS)
    w_even = load_rows(weight, even, (H + 2 * K) * D, C, 0, BLOCK_C)
    w_odd = load_rows(weight, even + 1, (H + 2 * K) * D, C, 0, BLOCK_C)
    g = load_vector(gain, C, BLOCK_C)
    if BIASED:
        b_even, b_odd = tl.load(bias + even).to(tl.float32), tl.load(bias + even + 1).to(tl.float32)
    else:
        b_even = tl.zeros((PAIRS,), tl.float32)
        b_odd = b_even
    if PDL:
        gdc_wait()
        gdc_launch_dependents()
    for row in tl.static_range(R):
        n = rms_norm(load_vector(x + row * C, C, BLOCK_C), g, eps, C, T)
        a = (tl.sum(w_even.to(tl.float32) * n[None, :], axis=1) + b_even).to(T).to(tl.float32)
        b = (tl.sum(w_odd.to(tl.float32) * n[None, :], axis=1) + b_odd).to(T).to(tl.float32)
        position = tl.load(positions + row)
        slot = tl.load(slots + row)
        if head < H + K:
            turn = rope + (position * (D // 2) + d // 2) * 2
            cosine, sine = tl.load(turn), tl.load(turn + 1)
            real, imaginary = (a * cosine - b * sine).to(T), (a * sine + b * cosine).to(T)
            if head < H:
                at = queries + (row * H + head) * D + d
                tl.store(at, real)
                tl.store(at + 1, imaginary)
            else:
                at = keys + ((slot * K + head - H) * max_len + position) * D + d
                tl.store(at, real)
                tl.store(at + 1, imaginary)
        else:
            at = values + ((slot * K + head - H - K) * max_len + position) * D + d
            tl.store(at, a.to(T))
            tl.store(at + 1, b.to(T))


@triton.jit
def gate_kernel(
    x, gain, w1, w3, out, eps,
    R: tl.constexpr, C: tl.constexpr, BLOCK_C: tl.constexpr, N: tl.constexpr, BLOCK_N: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Norm, then silu(w1 n) * w3 n -> out [R, N]."""
    T: tl.constexpr = w1.dtype.element_ty
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    gates, ups = load_rows(w1, n, N, C, 0, BLOCK_C), load_rows(w3, n, N, C, 0, BLOCK_C)
    g = load_vector(gain, C, BLOCK_C)
    if PDL:
        gdc_wait()
        gdc_launch_dependents()
    for row in tl.static_range(R):
        normed = rms_norm(load_vector(x + row * C, C, BLOCK_C), g, eps, C, T)
        gate = multiply(gates, normed, T)
        up = multiply(ups, normed, T)
        silu = (gate / (1 + tl.exp(-gate))).to(T).to(tl.float32)
        tl.store(out + row * N + n, (silu * up).to(T), mask=n < N)


@triton.jit
def add_kernel(
    y, weight, bias, x,
    R: tl.constexpr, C: tl.constexpr, BLOCK_C: tl.constexpr, N: tl.constexpr, BLOCK_N: tl.constexpr,
    BIASED: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """x [R, N] += weight [N, C] y [R, C], in place: no program reads what another one writes."""
    T: tl.constexpr = weight.dtype.element_ty
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    w = ()
    for first in tl.static_range(0, C, BLOCK_C):
        w = w + (load_rows(weight, n, N, C, first, BLOCK_C),)  # noqa: RUF005  the compiler knows no other way
    b = tl.load(bias + n, mask=n < N, other=0.0).to(tl.float32) if BIASED else tl.zeros((BLOCK_N,), tl.float32)
    if PDL:
        gdc_wait()
        gdc_launch_dependents()
    for row in tl.static_range(R):
        total = b
        for first in tl.static_range(0, C, BLOCK_C):
            part = load_vector(y + row * C + first, C - first, BLOCK_C)
            total += tl.sum(w[first // BLOCK_C].to(tl.float32) * part[None, :], axis=1)
        at = x + row * N + n
        added = tl.load(at, mask=n < N, other=0.0).to(tl.float32) + total.to(T).to(tl.float32)
        tl.store(at, added.to(T), mask=n < N)


@triton.jit
def head_kernel(
    x, gain, weight, logits, eps, stride,
    R: tl.constexpr, C: tl.constexpr, BLOCK_C: tl.constexpr, N: tl.constexpr, BLOCK_N: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Norm of the rows of x, which are `stride` apart, and a head -> logits float32 [R, N]."""
    T: tl.constexpr = weight.dtype.element_ty
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    w = load_rows(weight, n, N, C, 0, BLOCK_C)
    g = load_vector(gain, C, BLOCK_C)
    if PDL:
        gdc_wait()
        gdc_launch_dependents()
    for row in tl.static_range(R):
        normed = rms_norm(load_vector(x + row * stride, C, BLOCK_C), g, eps, C, T)
        tl.store(logits + row * N + n, multiply(w, normed, T), mask=n < N)
