"""Whose codes are decoded next, how many at once."""

from __future__ import annotations

import numpy as np
import pytest

from inference.decode_queue import Call, DecodeQueue
from inference.records import CodesChunk

FRAME_S = 0.05


def queue(piece: int = 8, most_streams: int = 1, joined: int = 0, alike=lambda state: None) -> DecodeQueue:
    return DecodeQueue(FRAME_S, piece, most_streams, 2048, joined, alike)


def put(decodes: DecodeQueue, stream_id: int, frames: int, first: int = 0, last: bool = False) -> None:
    codes = np.arange(first, first + frames, dtype=np.uint16)[None].repeat(2, axis=0)
    decodes.put(CodesChunk(stream_id, first, codes, last))


def ids(call: Call | None) -> list[int]:
    return [stream.stream_id for stream in call.streams]


def decoded(decodes: DecodeQueue, now: float = 0.0, seconds_per_frame: float = 0.0) -> list[tuple[int, list[int]]]:
    """(stream, frame numbers) of each call until nothing waits."""
    calls = []
    while call := decodes.next_call(now, seconds_per_frame):
        for stream, row in zip(call.streams, call.codes, strict=True):
            calls.append((stream.stream_id, row[0].tolist()))
            decodes.advance(stream, call.codes.shape[2], now)
    return calls


def advance(decodes: DecodeQueue, frames: int, now: float = 0.0) -> CodesChunk | None:
    """So many frames of the stream whose turn it is were decoded."""
    (stream,) = decodes.next_call(now, 0.0).streams
    return decodes.advance(stream, frames, now)


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
    assert ids(decodes.next_call(0.0, 0.01)) == [1]
    assert ids(decodes.next_call(-0.1, 0.01)) == [2]


def test_between_pieces_a_more_urgent_stream_comes_first():
    decodes = queue(piece=8)
    decodes.open(1, 50.0, None)
    put(decodes, 1, 20)
    assert advance(decodes, 8) is None
    decodes.open(2, None, None)
    put(decodes, 2, 4)
    assert decoded(decodes) == [(2, [0, 1, 2, 3]), (1, list(range(8, 16))), (1, [16, 17, 18, 19])]


def test_a_chunk_is_told_when_it_is_whole_and_its_listener_has_time_again():
    decodes = queue(piece=8)
    decodes.open(1, None, None)
    put(decodes, 1, 10)
    assert advance(decodes, 8, now=1.0) is None and decodes.backlog == 2
    chunk = advance(decodes, 2, now=2.0)
    assert chunk.codes.shape[1] == 10 and decodes.get(1).clock.dry_at == 2.0 + 10 * FRAME_S
    assert not decodes.ready() and decodes.next_call(0.0, 0.0) is None


def test_pieces_that_are_alike_are_decoded_together():
    decodes = queue(most_streams=2, alike=lambda state: state)
    for stream_id, frames, state in ((1, 4, "begun"), (2, 4, "new"), (3, 6, "begun"), (4, 4, "begun"), (5, 4, "begun")):
        decodes.open(stream_id, 1.0 + stream_id, state)
        put(decodes, stream_id, frames)
    assert ids(decodes.next_call(0.0, 0.0)) == [1, 4]


def test_one_call_takes_no_more_frames_than_it_may():
    decodes = DecodeQueue(FRAME_S, 8, 4, 10)
    for stream_id in (1, 2, 3):
        decodes.open(stream_id, None, None)
        put(decodes, stream_id, 5)
    assert ids(decodes.next_call(0.0, 0.0)) == [1, 2]


def test_chunks_that_wait_are_joined_and_each_piece_leaves_when_it_is_decoded():
    decodes = queue(joined=25)
    decodes.open(1, 5.0, None)
    for first in range(4, 34, 2):
        put(decodes, 1, 2, first, last=first == 32)
    begun = advance(decodes, 25, now=1.0)
    assert (begun.first_frame, begun.codes[0].tolist(), begun.last) == (4, list(range(4, 29)), False)
    put(decodes, 1, 2, 34)
    assert decodes.get(1).clock.dry_at == 5.0 + 25 * FRAME_S
    rest = advance(decodes, 7)
    assert (rest.first_frame, rest.codes[0].tolist()) == (29, list(range(29, 36)))


@pytest.mark.parametrize(("dry_at", "longest"), [(9.0, 20), (0.047, 15), (0.02, 8), (-1.0, 8)])
def test_a_piece_is_as_long_as_the_others_can_wait_for_it(dry_at, longest):
    """Stream 2 is to have a piece of 8 frames, 16 ms, before it is dry."""
    decodes = queue(joined=20)
    decodes.open(1, dry_at - 0.05, None)
    put(decodes, 1, 60, first=4)
    decodes.open(2, dry_at, None)
    put(decodes, 2, 30, first=4)
    call = decodes.next_call(0.0, 0.002)
    assert ids(call) == [1] and call.codes.shape[2] == longest


def test_a_long_piece_keeps_no_newcomer_waiting():
    """One that is here waits for the shortest piece, one to come for 50 ms."""
    decodes = queue(joined=25)
    decodes.open(1, 0.05, None)
    put(decodes, 1, 60, first=4)
    assert decodes.next_call(0.0, 0.0025).codes.shape[2] == 20
    decodes.open(2, None, None)
    put(decodes, 2, 4)
    decodes.open(3, 0.0, None)
    put(decodes, 3, 30, first=4)
    assert decoded(decodes, 0.0, 0.0025)[:3] == [(3, list(range(4, 12))), (2, [0, 1, 2, 3]), (1, list(range(4, 24)))]


def test_nobody_waits_longer_for_the_first_chunk():
    decodes = queue(joined=25)
    decodes.open(1, None, None)
    for first, frames in ((0, 4), (4, 2), (6, 2)):
        put(decodes, 1, frames, first)
    assert decoded(decodes) == [(1, [0, 1, 2, 3]), (1, [4, 5, 6, 7])]


def test_a_first_chunk_is_told_when_it_is_whole_even_where_pieces_leave_at_once():
    """Its length is what the client has asked for."""
    decodes = queue(joined=25)
    decodes.open(1, None, None)
    put(decodes, 1, 12)
    assert advance(decodes, 8) is None
    assert advance(decodes, 4).codes.shape[1] == 12


def test_the_last_chunk_is_still_the_last_when_it_is_joined():
    decodes = queue(joined=25)
    decodes.open(1, 5.0, None)
    put(decodes, 1, 2, first=4)
    put(decodes, 1, 0, first=6, last=True)
    chunk = advance(decodes, 2)
    assert chunk.last and chunk.first_frame == 4 and chunk.codes.shape[1] == 2


def test_where_borders_count_chunks_stay_what_they_are():
    decodes = queue(piece=2048)
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


def test_a_piece_of_each_comes_before_one_more_in_a_hurry():
    decodes = queue()
    for stream_id, frames in ((1, 30), (2, 3), (3, 0)):
        decodes.open(stream_id, 1.0, None)
        if frames:
            put(decodes, stream_id, frames)
    assert decodes.ahead == 8 + 3 and decodes.backlog == 33


def test_what_can_be_spared_is_what_the_tightest_has_behind_those_before_it():
    """Pieces of 8 frames take 0.08 s each; that 1 has much to be decoded later does not hurt 2."""
    decodes = queue()
    for stream_id, dry_at, frames in ((1, 0.3, 100), (2, 0.35, 8)):
        decodes.open(stream_id, dry_at, None)
        put(decodes, stream_id, frames)
    assert decodes.spare_s(0.0, 0.01) == pytest.approx(0.35 - 0.16)


def test_who_is_dry_for_want_of_codes_holds_nothing_up():
    decodes = queue()
    decodes.open(1, 0.3, None)
    assert decodes.spare_s(0.4, 0.01) == float("inf")
