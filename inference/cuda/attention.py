"""Attention of a step's queries to the keys and values of their slots: few queries, long memory.

Positions are cut into parts of fixed length.  Each part of a key/value head is one program; the last one to finish adds
the parts up, in their order.  So the order of a row's sums depends on its own length alone.

Shapes: R rows, H query heads, K key/value heads, D head width, P positions of a part.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

QUERIES = 16  # of one key/value head, at most: the least that matrix units take


@triton.jit
def attend_kernel(
    queries, keys, values, slots, positions, out, sums, weights, peaks, counters, max_len, scale,
    H: tl.constexpr, K: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr, P: tl.constexpr, PARTS: tl.constexpr,
    G: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """queries [R, H, D] at `positions` of `slots`, int64 [R]; caches [slots, K, max_len, D] -> out [R, H, D].

    Scratch, with more than one part: `sums` float32 [R, K, PARTS, G, D], `weights` and `peaks` float32
    [R, K, PARTS, G], `counters` int32 [R, K], zeros before and after.  The grid is (R, K, PARTS).
    """
    T: tl.constexpr = out.dtype.element_ty
    row, key, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if PDL:
        gdc_wait()
        gdc_launch_dependents()
    position = tl.load(positions + row)
    if part * P <= position:
        group: tl.constexpr = H // K
        g, d, p = tl.arange(0, G), tl.arange(0, BLOCK_D), part * P + tl.arange(0, P)
        inside = (g[:, None] < group) & (d[None, :] < D)
        heads = (row * H + key * group + g[:, None]) * D + d[None, :]
        q = tl.load(queries + heads, mask=inside, other=0.0)
        seen = (p[:, None] <= position) & (d[None, :] < D)
        cells = ((tl.load(slots + row) * K + key) * max_len + p[:, None]) * D + d[None, :]
        k = tl.load(keys + cells, mask=seen, other=0.0)
        v = tl.load(values + cells, mask=seen, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(p[None, :] <= position, scores, float("-inf"))
        peak = tl.max(scores, axis=1)
        chances = tl.exp(scores - peak[:, None])
        weight = tl.sum(chances, axis=1)
        total = tl.dot(chances.to(T), v, input_precision="ieee")
        if PARTS == 1:
            tl.store(out + heads, (total / weight[:, None]).to(T), mask=inside)
        else:
            place = (row * K + key) * PARTS + part
            tl.store(sums + (place * G + g[:, None]) * D + d[None, :], total, mask=d[None, :] < D)
            tl.store(weights + place * G + g, weight)
            tl.store(peaks + place * G + g, peak)
            tl.debug_barrier()  # all of this program's are written before it counts as done
            parts = (position // P + 1).to(tl.int32)
            if tl.atomic_add(counters + row * K + key, 1, sem="acq_rel") == parts - 1:
                tl.store(counters + row * K + key, 0)
                peak = tl.full((G,), float("-inf"), tl.float32)
                weight = tl.zeros((G,), tl.float32)
                total = tl.zeros((G, BLOCK_D), tl.float32)
                place, end = (row * K + key) * PARTS, (row * K + key) * PARTS + parts
                while place < end:  # loads past the first-level cache, which may be older than what others wrote
                    next_peak = tl.load(peaks + place * G + g, cache_modifier=".cg")
                    next_weight = tl.load(weights + place * G + g, cache_modifier=".cg")
                    at = sums + (place * G + g[:, None]) * D + d[None, :]
                    next_total = tl.load(at, mask=d[None, :] < D, other=0.0, cache_modifier=".cg")
                    highest = tl.maximum(peak, next_peak)
                    old, new = tl.exp(peak - highest), tl.exp(next_peak - highest)
                    weight = weight * old + next_weight * new
                    total = total * old[:, None] + next_total * new[:, None]
                    peak = highest
                    place += 1
                tl.store(out + heads, (total / weight[:, None]).to(T), mask=inside)
