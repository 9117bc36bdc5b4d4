"""Sizes that prompts are padded to, where each size is captured once."""

from __future__ import annotations

from bisect import bisect_left

_LEAST = 32


def buckets(most: int) -> list[int]:
    """Powers of two from 32 up, and last `most` itself."""
    sizes, size = [], _LEAST
    while size < most:
        sizes.append(size)
        size *= 2
    return [*sizes, most]


def bucket_of(count: int, sizes: list[int]) -> int:
    """The smallest size that holds `count`, which is at most the last one."""
    return sizes[bisect_left(sizes, count)]
