"""Which size a prompt is padded to."""

from __future__ import annotations

import pytest

from inference.buckets import bucket_of, buckets


@pytest.mark.parametrize("most", [16, 32, 48, 96, 2048])
def test_every_prompt_has_the_smallest_size_that_holds_it(most):
    sizes = buckets(most)
    assert sizes == sorted(set(sizes)) and sizes[-1] == most
    for count in range(1, most + 1):
        size = bucket_of(count, sizes)
        assert count <= size and not any(count <= smaller < size for smaller in sizes)


def test_sizes_are_few():
    assert buckets(2048) == [32, 64, 128, 256, 512, 1024, 2048]
