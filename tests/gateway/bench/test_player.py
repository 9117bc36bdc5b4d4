"""What a player's notes say, on notes whose figures are known."""

from __future__ import annotations

import pytest

from gateway.bench.player import UNDERRUN_S, Player, Released

RATE = 1000
TEXT = "One, two."  # segments "One," and " two."


def player(*chunks: tuple[float, int, int], typed: float = 0.0, pace: float = 0.0) -> Player:
    """Characters typed `pace` s apart from `typed` on; chunks are (arrival, start, samples)."""
    made = Player(TEXT, RATE)
    for index in range(len(TEXT)):
        made.typed(typed + index * pace, index)
    made.done(typed + len(TEXT) * pace)
    made.segments = [("One,", 0), (" two.", 1000)]
    for chunk in chunks:
        made.heard(*chunk)
    return made


def test_a_player_that_always_has_something_has_no_underrun():
    smooth = player((0.2, 0, 500), (0.3, 500, 500), (1.1, 1000, 500))
    assert smooth.dry_s() == smooth.dry_s(Released.ANNOUNCED) == smooth.silence_s() == 0
    assert smooth.first_packet_s == pytest.approx(0.2)
    assert smooth.audio_s == 1.5
    assert smooth.real_time_factor == pytest.approx(1.1 / 1.5)
    assert smooth.heard_until == pytest.approx(1.7)


def test_a_stall_inside_a_segment_is_an_underrun_by_both_readings():
    stalled = player((0.2, 0, 500), (0.9, 500, 500), (1.0, 1000, 500))
    assert stalled.dry_s() == pytest.approx(0.2) == stalled.dry_s(Released.ANNOUNCED)
    assert stalled.silence_s() == pytest.approx(0.2)
    assert stalled.heard_until == pytest.approx(1.9)


def test_a_late_segment_is_one_if_its_text_was_there():
    late = player((0.2, 0, 500), (0.3, 500, 500), (1.5, 1000, 500))
    assert late.dry_s() == pytest.approx(0.3)
    assert late.dry_s(Released.ANNOUNCED) == 0


def test_waiting_for_the_writer_is_none_but_the_time_to_the_packet_is():
    """Its end is sent at 1.8 s, its audio comes at 2.0; the first segment was over at 1.4."""
    waited = player((0.4, 0, 500), (0.5, 500, 500), (2.0, 1000, 500), pace=0.2)
    assert waited.dry_s() == pytest.approx(0.2)
    assert waited.dry_s(Released.ANNOUNCED) == 0
    assert waited.silence_s() == pytest.approx(0.6)


def test_what_is_shorter_than_the_threshold_is_none():
    assert player((0, 0, 500), (0.5 + UNDERRUN_S * 0.9, 500, 500)).dry_s() == 0
    assert player((0, 0, 500), (0.5 + UNDERRUN_S * 1.1, 500, 500)).dry_s() == pytest.approx(UNDERRUN_S * 1.1)


def test_the_first_packet_counts_from_the_character_behind_its_segment():
    assert player((1.0, 0, 1000), pace=0.1).first_packet_s == pytest.approx(0.6)  # " " was sent at 0.4


def test_text_that_is_spoken_before_it_is_certain_counts_from_the_last_piece():
    assert player((0.35, 0, 1000), pace=0.1).first_packet_s == pytest.approx(0.05)


def test_pieces_may_be_longer_than_a_character():
    made = Player(TEXT, RATE)
    made.typed(1.0, 0)
    made.typed(2.0, 6)
    made.done(3.0)
    assert [made.typed_at(position) for position in (0, 5, 6, 8, 9)] == [1.0, 1.0, 2.0, 2.0, 3.0]
    assert made.started_at == 1.0


def test_the_buffer_rises_with_each_chunk_and_falls_in_real_time():
    corners = player((0.25, 0, 500), (0.5, 500, 250), (2.0, 750, 250)).buffer()
    assert corners == [
        (0.25, 0.0), (0.25, 0.0), (0.25, 0.5),  # starts
        (0.5, 0.25), (0.5, 0.5),
        (1.0, 0.0), (2.0, 0.0), (2.0, 0.25),  # dry from 1.0 on
        (2.25, 0.0),
    ]  # fmt: skip
