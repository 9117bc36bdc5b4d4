"""Noise and sampling on the device.

The noise is that of `inference/noise.py`, bit for bit: Philox 4x64 with ten rounds (Salmon et al. 2011), keyed by seed
and segment, counted by step and block.

The race is that of `inference/sampling.py` without its sort.  Its winner is the best score of those that the filter
keeps.  So the best of all is looked for; if the filter removes it, it removes all that are behind it in the order of
logits too, and the best of the rest is looked for.

Shapes: R rows, V entries of a row of logits, C width of the fast AR.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

_M0, _M1 = tl.constexpr(0xD2E7470EE14C6C93), tl.constexpr(0xCA5A826395121157)
_W0, _W1 = tl.constexpr(0x9E3779B97F4A7C15), tl.constexpr(0xBB67AE8584CAA73B)
_TINY = tl.constexpr(1.1754943508222875e-38)
_MIN_TEMPERATURE = tl.constexpr(1e-5)


@triton.jit
def _store_pair(at, index, word, SIZE: tl.constexpr):
    """Two numbers in (0, 1] of a 64-bit word, its lower half first."""
    low = 1 - ((word & 0xFFFFFFFF) >> 8).to(tl.float32) * (1.0 / 16777216.0)
    high = 1 - (word >> 40).to(tl.float32) * (1.0 / 16777216.0)
    tl.store(at + index, low, mask=index < SIZE)
    tl.store(at + index + 1, high, mask=index + 1 < SIZE)


@triton.jit
def noise_kernel(rows, keys, lengths, noise, SIZE: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr):
    """noise float32 [R, SIZE] of the slots `rows` int64 [R].  `keys` int64 [slots, 3]: seed, segment, and the length
    at step 0; `lengths` int64 [slots]."""
    row, block = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    if PDL:
        gdc_wait()
        gdc_launch_dependents()
    slot = tl.load(rows + row)
    step = (tl.load(lengths + slot) - tl.load(keys + slot * 3 + 2)).to(tl.uint64)
    zero = block.to(tl.uint64) * 0
    k0, k1 = tl.load(keys + slot * 3).to(tl.uint64) + zero, tl.load(keys + slot * 3 + 1).to(tl.uint64) + zero
    c0, c1, c2, c3 = block.to(tl.uint64) + 1, zero, zero, zero + step
    for _ in tl.static_range(10):
        high0, low0 = tl.umulhi(zero + _M0, c0), c0 * _M0
        high1, low1 = tl.umulhi(zero + _M1, c2), c2 * _M1
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + _W0, k1 + _W1
    at = noise + row * SIZE
    _store_pair(at, 8 * block, c0, SIZE)
    _store_pair(at, 8 * block + 2, c1, SIZE)
    _store_pair(at, 8 * block + 4, c2, SIZE)
    _store_pair(at, 8 * block + 6, c3, SIZE)


@triton.jit
def _race(logits, chances, uniform, temperature, top_k, top_p, V: tl.constexpr, BLOCK_V: tl.constexpr):
    """One row: logits (-inf behind V), their probabilities and noise, [BLOCK_V] each -> the winner's id."""
    v = tl.arange(0, BLOCK_V)
    noise = tl.log(tl.maximum(-tl.log(uniform), _TINY))
    scores = tl.where(v < V, logits / tl.maximum(temperature, _MIN_TEMPERATURE) - noise, float("-inf"))
    winner = -1
    while winner < 0:
        best = tl.argmax(scores, axis=0)
        logit = tl.max(tl.where(v == best, logits, float("-inf")), axis=0)
        before = (logits > logit) | ((logits == logit) & (v < best))
        rank = tl.sum(before.to(tl.int32), axis=0)
        mass = tl.sum(tl.where(before | (v == best), chances, 0.0), axis=0)
        kept = (rank == 0) | ((rank < top_k) & (mass <= top_p))
        winner = tl.where(kept, best, -1)
        scores = tl.where(before, scores, float("-inf"))
    return winner


@triton.jit
def _chances(logits):
    raised = tl.exp(logits - tl.max(logits, axis=0))
    return raised / tl.sum(raised, axis=0)


@triton.jit
def semantic_kernel(
    logits, noise, rows, sampling, said, windows, made, ras_temperature, ras_top_p,
    V: tl.constexpr, BLOCK_V: tl.constexpr, S: tl.constexpr, SIZE: tl.constexpr, W: tl.constexpr, BLOCK_W: tl.constexpr,
    BOOKS: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Repetition-aware draw (`sampling.sample_semantic`) from logits float32 [R, S + 1], of which the first V count.

    The id goes to made[:, 0] and, the end clamped, to made[:, 1]; made int64 [R, BOOKS + 1].
    """
    row, v = tl.program_id(0), tl.arange(0, BLOCK_V)
    if PDL:
        gdc_wait()
        gdc_launch_dependents()
    slot = tl.load(rows + row)
    scored = tl.load(logits + row * (S + 1) + v, mask=v < V, other=float("-inf"))
    penalty = tl.load(sampling + slot * 4 + 3)
    repeated = tl.load(said + slot * (S + 1) + v, mask=v < V, other=0) != 0
    scored = tl.where(repeated, tl.where(scored > 0, scored / penalty, scored * penalty), scored)
    chances = _chances(scored)
    temperature, top_p = tl.load(sampling + slot * 4), tl.load(sampling + slot * 4 + 2)
    top_k = tl.load(sampling + slot * 4 + 1).to(tl.int32)
    normal = tl.load(noise + row * SIZE + v, mask=v < V, other=1.0)
    code = _race(scored, chances, normal, temperature, top_k, top_p, V, BLOCK_V)
    w = tl.arange(0, BLOCK_W)
    window = tl.load(windows + slot * W + w, mask=w < W, other=-1)
    if tl.max((window == code).to(tl.int32), axis=0) > 0:
        high = tl.load(noise + row * SIZE + S + 1 + v, mask=v < V, other=1.0)
        code = _race(scored, chances, high, ras_temperature, top_k, ras_top_p, V, BLOCK_V)
    tl.store(made + row * (BOOKS + 1), code.to(tl.int64))
    tl.store(made + row * (BOOKS + 1) + 1, tl.minimum(code, S - 1).to(tl.int64))


@triton.jit(do_not_specialize=["book"])
def code_kernel(
    logits, noise, rows, sampling, made, embeddings, x,
    book, V: tl.constexpr, BLOCK_V: tl.constexpr, FIRST: tl.constexpr, SIZE: tl.constexpr, BOOKS: tl.constexpr,
    C: tl.constexpr, BLOCK_C: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Draw of codebook `book` from logits float32 [R, V], with the noise from FIRST + (book - 1) * V on.

    The code goes to made[:, book + 1], and its embedding to x [R, C], the next position's input.
    """
    row, v, c = tl.program_id(0), tl.arange(0, BLOCK_V), tl.arange(0, BLOCK_C)
    if PDL:
        gdc_wait()
        gdc_launch_dependents()
    slot = tl.load(rows + row)
    scored = tl.load(logits + row * V + v, mask=v < V, other=float("-inf"))
    uniform = tl.load(noise + row * SIZE + FIRST + (book - 1) * V + v, mask=v < V, other=1.0)
    temperature, top_p = tl.load(sampling + slot * 4), tl.load(sampling + slot * 4 + 2)
    top_k = tl.load(sampling + slot * 4 + 1).to(tl.int32)
    code = _race(scored, _chances(scored), uniform, temperature, top_k, top_p, V, BLOCK_V)
    tl.store(made + row * (BOOKS + 1) + book + 1, code.to(tl.int64))
    tl.store(x + row * C + c, tl.load(embeddings + code * C + c, mask=c < C), mask=c < C)
