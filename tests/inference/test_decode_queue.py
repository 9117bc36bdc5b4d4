"""Whose codes are decoded next, how many at once."""

from __future__ import annotations

import numpy as np
import pytest

from inference.decode_queue import CodecStream, DecodeQueue
from inference.records import CodesChunk

FRAME_S = 0.05


def queue(longest: int = 8, most_streams: int = 1, joins: bool = False, alike=lambda state: None) -> DecodeQueue:
    return DecodeQueue(FRAME_S, longest, most_streams, 2048, joins, alike)


def put(decodes: DecodeQueue, stream_id: int, frames: int, first: int = 0, last: bool = False) -> None:
    codes = np.arange(first, first + frames, dtype=np.uint16)[None].repeat(2, axis=0)
    decodes.put(CodesChunk(stream_id, first, codes, last))


def ids(batch: list[CodecStream]) -> list[int]:
    return [stream.stream_id for stream in batch]


def decoded(decodes: DecodeQueue, now: float = 0.0) -> list[tuple[int, list[int]]]:
    """(stream, frame numbers) of each call until nothing waits."""
    calls = []
    while batch := decodes.batch(now, 0.0):
        codes = decodes.next_codes(batch)
        for stream, row in zip(batch, codes, strict=True):
            calls.append((stream.stream_id, row[0].tolist()))
            decodes.advance(stream, codes.shape[2], now)
    return calls


def test_who_has_heard_nothing_comes_first_then_who_is_dry_first():
    decodes = queue()
    for stream_id, dry_at in ((1, 20.0), (2, 10.0), (3, None), (4, None)):
        decodes.open(stream_id, dry_at, None)
        put(decodes, stream_id, 4)
    assert [stream_id for stream_id, _ in decoded(decodes)] == [3, 4, 2, 1]


def test_who_would_be_dry_behind_another_piece_comes_before_newcomers():
    """4 frames of its own and 8 of another one take 0.12 s."""
    decodes = queue()
    for stream_id, dry_at in ((1, 0.11), (2, None)):
        decodes.open(stream_id, dry_at, None)
        put(decodes, stream_id, 4)
    assert ids(decodes.batch(0.0, 0.01)) == [1]
    assert ids(decodes.batch(-0.1, 0.01)) == [2]


def test_between_pieces_a_more_urgent_stream_comes_first():
    decodes = queue(longest=8)
    decodes.open(1, 50.0, None)
    put(decodes, 1, 20)
    stream = decodes.batch(0.0, 0.0)[0]
    assert decodes.advance(stream, 8, 0.0) is None
    decodes.open(2, None, None)
    put(decodes, 2, 4)
    assert decoded(decodes) == [(2, [0, 1, 2, 3]), (1, list(range(8, 16))), (1, [16, 17, 18, 19])]


def test_a_chunk_is_told_when_it_is_whole_and_its_listener_has_time_again():
    decodes = queue(longest=8)
    decodes.open(1, None, None)
    put(decodes, 1, 10)
    stream = decodes.batch(0.0, 0.0)[0]
    assert decodes.advance(stream, 8, 1.0) is None and decodes.backlog == 2
    chunk = decodes.advance(stream, 2, 2.0)
    assert chunk.codes.shape[1] == 10 and stream.clock.dry_at == 2.0 + 10 * FRAME_S
    assert not decodes.ready() and decodes.batch(0.0, 0.0) == []


def test_pieces_that_are_alike_are_decoded_together():
    decodes = queue(most_streams=2, alike=lambda state: state)
    for stream_id, frames, state in ((1, 4, "begun"), (2, 4, "new"), (3, 6, "begun"), (4, 4, "begun"), (5, 4, "begun")):
        decodes.open(stream_id, 1.0 + stream_id, state)
        put(decodes, stream_id, frames)
    assert ids(decodes.batch(0.0, 0.0)) == [1, 4]


def test_one_call_takes_no_more_frames_than_it_may():
    decodes = DecodeQueue(FRAME_S, 8, 4, 10, joins=False)
    for stream_id in (1, 2, 3):
        decodes.open(stream_id, None, None)
        put(decodes, stream_id, 5)
    assert ids(decodes.batch(0.0, 0.0)) == [1, 2]


def test_short_chunks_that_wait_are_joined_into_pieces():
    decodes = queue(longest=8, joins=True)
    decodes.open(1, 5.0, None)
    for first in range(4, 14, 2):
        put(decodes, 1, 2, first, last=first == 12)
    assert decoded(decodes) == [(1, list(range(4, 12))), (1, [12, 13])]


def test_nobody_waits_longer_for_the_first_chunk():
    decodes = queue(longest=8, joins=True)
    decodes.open(1, None, None)
    for first, frames in ((0, 4), (4, 2), (6, 2)):
        put(decodes, 1, frames, first)
    assert decoded(decodes) == [(1, [0, 1, 2, 3]), (1, [4, 5, 6, 7])]


def test_the_last_chunk_is_still_the_last_when_it_is_joined():
    decodes = queue(joins=True)
    decodes.open(1, 5.0, None)
    put(decodes, 1, 2, first=4)
    put(decodes, 1, 0, first=6, last=True)
    chunk = decodes.advance(decodes.batch(0.0, 0.0)[0], 2, 0.0)
    assert chunk.last and chunk.first_frame == 4 and chunk.codes.shape[1] == 2


def test_where_borders_count_chunks_stay_what_they_are():
    decodes = queue(longest=2048)
    decodes.open(1, 5.0, None)
    for first, frames in ((0, 4), (4, 25), (29, 25)):
        put(decodes, 1, frames, first)
    assert [len(frames) for _, frames in decoded(decodes)] == [4, 25, 25]


def test_a_stream_that_has_ended_is_not_decoded():
    decodes = queue()
    decodes.open(1, None, None)
    put(decodes, 1, 4)
    decodes.close(1)
    assert decodes.get(1) is None and len(decodes) == 0 and not decodes.ready() and decodes.backlog == 0


def test_other_work_may_take_as_long_as_nobody_needs_a_decode():
    """4 frames take 0.04 s of the 0.3 s that are left; who hears nothing yet has no time to give away."""
    decodes = queue()
    assert decodes.spare_s(0.0, 0.01) == float("inf")
    decodes.open(1, 0.3, None)
    assert decodes.spare_s(0.0, 0.01) == pytest.approx(0.3)
    put(decodes, 1, 4)
    assert decodes.spare_s(0.0, 0.01) == pytest.approx(0.26)
    assert decodes.spare_s(0.4, 0.01) < 0
    decodes.open(2, None, None)
    assert decodes.spare_s(0.0, 0.01) == pytest.approx(0.26)
    put(decodes, 2, 4)
    assert decodes.spare_s(0.0, 0.01) == 0


def test_who_is_dry_for_want_of_codes_holds_nothing_up():
    decodes = queue()
    decodes.open(1, 0.3, None)
    assert decodes.spare_s(0.4, 0.01) == float("inf")
