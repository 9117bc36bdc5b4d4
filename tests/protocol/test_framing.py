"""The header of binary messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.framing import HEADER_BYTES, AudioHeader

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)


def test_the_bytes_are_those_of_the_specification():
    packed = AudioHeader(context_number=1, sequence=0, samples=8192, start=2**33).pack()
    assert packed.hex(" ") == "41 38 01 01 01 00 00 00 00 00 00 00 00 20 00 00 00 00 00 00 02 00 00 00"
    assert AudioHeader(1, 5, 1, 1).pack()[3] == 0


@given(st.builds(AudioHeader, U32, U32, U32, U64))
def test_what_is_packed_is_unpacked(header):
    packed = header.pack()
    assert len(packed) == HEADER_BYTES
    assert AudioHeader.unpack(packed + b"samples") == header


@pytest.mark.parametrize("change", [b"", b"XX", b"A8\x02\x01", b"A8\x01\x00", b"A8\x01\x81"])
def test_anything_else_is_refused(change):
    message = change + AudioHeader(0, 0, 0, 0).pack()[len(change) :] if change else b"short"
    with pytest.raises(ValueError, match=r"header|expected|flags"):
        AudioHeader.unpack(message)
