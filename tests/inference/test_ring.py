"""The ring: records that are half there are not there, and content that makes no sense is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.ring import HEADER, Ring, RingError


def ring(capacity: int = 256) -> tuple[Ring, bytearray]:
    memory = bytearray(HEADER + capacity)
    return Ring(memoryview(memory)), memory


@given(st.lists(st.one_of(st.none(), st.binary(max_size=120))))
def test_it_is_a_queue(actions):
    """Any order of writes (bytes) and reads (None) behaves as a list does; a write is refused only for want of room."""
    tested, _ = ring()
    model: list[bytes] = []
    for data in actions:
        if data is None:
            assert tested.read() == (model.pop(0) if model else None)
            continue
        room = sum(8 + (len(item) + 7) // 8 * 8 for item in [*model, data])
        assert tested.write(data) == (room <= 256)
        if room <= 256:
            model.append(data)
    assert [tested.read() for _ in model] == model


@pytest.mark.parametrize("lap", range(9))
def test_a_position_seen_before_the_bytes_shows_no_record_yet(lap):
    """As a machine that reorders stores may show it: for each byte that is late, the old byte stands in its place."""
    writer, memory = ring()
    for _ in range(lap):
        writer.write(b"the very same record")
        writer.read()
    before = bytes(memory)
    writer.write(b"the very same record")
    late = [index for index in range(HEADER, len(memory)) if memory[index] != before[index]]
    assert late
    whole = bytes(memory)
    for index in late:
        memory[index] = before[index]
        assert writer.read() is None
        memory[index] = whole[index]
    memory[HEADER:] = before[HEADER:]
    assert writer.read() is None
    memory[HEADER:] = whole[HEADER:]
    assert writer.read() == b"the very same record"


def test_a_record_that_never_becomes_whole_is_an_error():
    tested, memory = ring()
    tested.write(b"damaged")
    memory[HEADER + 8] ^= 1
    with pytest.raises(RingError, match="byte 0 "):
        for _ in range(20_000):
            assert tested.read() is None


def test_discarded_records_are_gone_and_make_room():
    tested, _ = ring()
    while tested.write(b"x" * 50):
        pass
    tested.discard()
    assert tested.read() is None and tested.write(b"y" * 248) and tested.read() == b"y" * 248


@pytest.mark.parametrize("capacity", [0, 56, 65])
def test_an_odd_size_is_refused(capacity):
    with pytest.raises(ValueError, match="multiple of 8"):
        ring(capacity)
