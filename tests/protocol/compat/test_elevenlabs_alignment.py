"""Estimated alignment: every character once, in order, within the audio of its message."""

from __future__ import annotations

import pytest

from protocol.compat.elevenlabs.alignment import Alignment, Told

RATE = 1000  # a sample is a millisecond


def ends(told: Told) -> int:
    return told["charStartTimesMs"][-1] + told["charDurationsMs"][-1]


def test_a_segment_of_known_length_is_spread_evenly():
    alignment = Alignment(RATE)
    alignment.begin("abcd", "x")
    alignment.advance(500, 1000)
    first, spoken = alignment.take()
    assert first == {"chars": ["a", "b"], "charStartTimesMs": [0, 250], "charDurationsMs": [250, 250]}
    assert spoken == {"chars": ["x"], "charStartTimesMs": [0], "charDurationsMs": [500]}
    alignment.advance(500, 1000)
    last, spoken = alignment.take()
    assert last == {"chars": ["c", "d"], "charStartTimesMs": [0, 250], "charDurationsMs": [250, 250]}
    assert spoken == {"chars": [" "], "charStartTimesMs": [0], "charDurationsMs": [500]}


@pytest.mark.parametrize("pace", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("known_after", [0, 3, 99])
def test_every_character_is_told_once_and_no_time_is_lost(pace, known_after):
    text = "The quick brown fox jumps over the lazy dog. "
    total = round(len(text) * 70 * pace)
    sizes = [total // 10] * 9
    sizes.append(total - sum(sizes))
    alignment = Alignment(RATE)
    chars, normalized, elapsed = [], [], 0
    for _ in range(2):
        alignment.begin(text, text.strip())
        for number, size in enumerate(sizes):
            is_known = number >= known_after or number == len(sizes) - 1
            alignment.advance(size, total if is_known else None)
            told, spoken = alignment.take()
            chars += told["chars"] if told else []
            normalized += spoken["chars"] if spoken else []
            for each in filter(None, (told, spoken)):
                assert ends(each) == size and each["charStartTimesMs"] == sorted(each["charStartTimesMs"])
            elapsed += ends(told) if told else 0
    assert "".join(chars) == text * 2 == "".join(normalized)
    assert alignment.rest() == (None, None)
    if pace <= 1 or known_after == 0:
        assert elapsed == 2 * total, "players that add up what they were told stay in time with the audio"


def test_what_an_encoder_keeps_is_told_with_the_message_that_brings_it():
    alignment = Alignment(RATE)
    alignment.begin("ab", "ab")
    alignment.advance(100, 200)
    alignment.advance(100, 200)
    alignment.begin("c", "c")
    alignment.advance(50, 50)
    told, _ = alignment.take()
    assert told == {"chars": ["a", "b", "c"], "charStartTimesMs": [0, 100, 200], "charDurationsMs": [100, 100, 50]}


def test_text_without_a_sound_comes_at_the_end():
    alignment = Alignment(RATE)
    alignment.begin("Hi.", "Hi.")
    alignment.advance(100, 100)
    alignment.take()
    alignment.begin(" 🎉", "")
    assert alignment.rest() == ({"chars": [" ", "🎉"], "charStartTimesMs": [0, 0], "charDurationsMs": [0, 0]}, None)
