"""Utterances without an end are stopped, speech and its pauses are not."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from inference.ends import EndGuard, longest_s

RATE = 44100 / 2048
LONG = "The train to the coast leaves at half past nine every morning, and it is never late. " * 6


def speech(seconds: float, seed: int = 0) -> list[int]:
    """Codes as various as those of the embedded voices: some last for two frames, some return."""
    rng, codes = random.Random(seed), []
    while len(codes) < round(seconds * RATE):
        codes += [rng.randrange(300)] * rng.choice([1, 1, 1, 2])
    return codes[: round(seconds * RATE)]


def first_stop(text: str, codes: Iterable[int]) -> tuple[int, int] | None:
    """(frames until it is stopped, frames worth hearing), None if it is not."""
    guard = EndGuard(text, RATE)
    for number, code in enumerate(codes, 1):
        if (kept := guard.add(code)) is not None:
            return number, kept
    return None


@pytest.mark.parametrize("period", [1, 2, 3, 7, 15, 30])
def test_a_constant_or_a_loop_is_stopped_after_8_seconds_and_cut(period):
    spoken = speech(3)
    stop = first_stop(LONG, spoken + [1000 + i % period for i in range(2000)])
    assert stop is not None
    stopped, kept = stop
    assert 6 < (stopped - len(spoken)) / RATE <= 8.01
    assert len(spoken) - round(2 * RATE) <= kept <= len(spoken)


def test_a_loop_is_cut_where_it_begins():
    assert first_stop(LONG, speech(10) + [1000, 1001, 1002] * 200)[1] == len(speech(10))


def test_a_hum_of_a_few_codes_is_stopped():
    rng = random.Random(1)
    assert first_stop(LONG, speech(3) + [rng.randrange(1000, 1020) for _ in range(2000)])[0] < 12 * RATE


@pytest.mark.parametrize("seed", range(5))
def test_a_pause_of_three_or_five_seconds_is_not_cut(seed):
    for pause in (3, 5):
        silence = [random.Random(seed).choice([900, 901, 902]) for _ in range(round(pause * RATE))]
        assert first_stop(LONG, speech(6, seed) + silence + speech(10, seed + 100)) is None
        assert first_stop(LONG, silence + speech(10, seed) + silence) is None  # at either end as well


def test_noise_is_stopped_at_the_bound_of_its_text():
    rng, text = random.Random(2), "Good morning to you."
    stopped, kept = first_stop(text, (rng.randrange(4096) for _ in range(4000)))
    assert stopped == kept == round(longest_s(text) * RATE)


def test_what_is_too_long_and_dull_at_its_end_is_cut_there():
    text, spoken = "Good morning to you.", speech(1.5)
    stopped, kept = first_stop(text, spoken + [1000] * 2000)
    assert stopped == round(longest_s(text) * RATE)
    assert kept == len(spoken)


@pytest.mark.parametrize("text", ["Hi", "No.", "A", "7", "OK!", "Bye", "ja", "はい", "1次"])
def test_a_word_may_take_two_to_four_seconds(text):
    assert 2 < longest_s(text) <= 4


@pytest.mark.parametrize(
    ("text", "seconds"),  # of slow, clear speech
    [
        ("I am here now, and I will wait for you until the rain has stopped.", 7),
        ("In 1492, 3,517 ships sailed 12,345 miles.", 12),
        ("IEEE, BBC, WWW and HTTPS.", 10),
        ("今日はとても良い天気ですね。", 7),
        ("오늘은 날씨가 아주 좋네요.", 6),
        ("Здравствуйте, как у вас дела?", 5),
        ("100 % of € 2,50", 7),
    ],
)
def test_the_bound_is_wide(text, seconds):
    assert 1.2 * seconds < longest_s(text) < 5 * seconds


def test_letters_that_are_spelled_may_take_as_long_as_words():
    assert longest_s("a b c") > longest_s("abc") + 1.0
