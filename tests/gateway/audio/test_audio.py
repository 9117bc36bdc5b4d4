"""Formats and sample rates."""

from __future__ import annotations

import numpy as np
import pytest
import soxr

from gateway.audio.samples import SAMPLE_FORMATS, SegmentConverter, wire_length

RATES = (8000, 16000, 22050, 24000, 32000, 48000)
SPEEDS = (0.25, 0.7, 0.95, 1.2, 2.0, 4.0)


def _tone(count: int) -> np.ndarray:
    return (0.5 * np.sin(np.arange(count) * 2 * np.pi * 440 / 44100)).astype(np.float32)


async def _convert(samples: np.ndarray, rate: int, sizes: list[int], speed: float = 1.0) -> np.ndarray:
    converter = SegmentConverter(rate, speed)
    ends = np.cumsum(sizes)
    assert ends[-1] == len(samples)
    pieces = np.split(samples, ends[:-1])
    last = len(pieces) - 1
    return np.concatenate([await converter.convert(piece, number == last) for number, piece in enumerate(pieces)])


def test_pcm_is_clipped_and_rounded():
    samples = np.array([0, 1, -1, 2, -2, 0.5, 1e-6], np.float32)
    assert np.frombuffer(SAMPLE_FORMATS["pcm"](samples), "<i2").tolist() == [0, 32767, -32767, 32767, -32767, 16384, 0]


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        # G.711: silence, the smallest steps, half scale, full scale, of either sign
        ("mulaw", {0: 0xFF, 4: 0xFE, -4: 0x7E, 16384: 0x8F, -16384: 0x0F, 32767: 0x80, -32767: 0x00}),
        ("alaw", {0: 0xD5, 16: 0xD4, -16: 0x55, -17: 0x54, 16384: 0xA5, -16384: 0x3A, 32767: 0xAA, -32767: 0x2A}),
    ],
)
def test_g711_codes(name, codes):
    samples = (np.array(list(codes)) / 32767).astype(np.float32)
    assert list(SAMPLE_FORMATS[name](samples)) == list(codes.values())


@pytest.mark.parametrize(("name", "most"), [("mulaw", 0.04), ("alaw", 0.04)])
def test_g711_is_monotonic_and_close(name, most):
    """Each code stands for one run of levels, no wider than its logarithmic step."""
    levels = np.arange(1, 32768) / 32767
    codes = np.frombuffer(SAMPLE_FORMATS[name](levels.astype(np.float32)), np.uint8)
    borders = np.flatnonzero(np.diff(codes)) + 1
    assert len(np.unique(codes)) == len(borders) + 1 == 128
    runs = np.split(levels, borders)
    assert all(run[-1] - run[0] <= max(most * run[-1] * 2, 16 / 32767) for run in runs)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("count", [0, 1, 7, 2048, 8192, 59392, 100_001])
async def test_lengths_are_exact(rate, count):
    assert wire_length(count, rate) == int(np.floor(count * rate / 44100 + 0.5))
    first = min(count, 8192)
    assert len(await _convert(_tone(count), rate, [first, count - first])) == wire_length(count, rate)


@pytest.mark.parametrize("rate", RATES)
async def test_pieces_make_the_same_sound_as_the_whole(rate):
    samples = _tone(60_000)
    whole = soxr.resample(samples, 44100, rate)
    pieces = await _convert(samples, rate, [8192, 51200, 608])
    assert len(whole) == len(pieces) and np.abs(whole - pieces).max() < 1e-5


@pytest.mark.parametrize("rate", RATES)
async def test_the_end_of_a_segment_is_not_cut(rate):
    """A click in the last milliseconds comes through: the filter is drained."""
    samples = np.zeros(20_000, np.float32)
    samples[-200:-100] = 0.5
    out = await _convert(samples, rate, [8192, 11808])
    assert np.abs(out[-int(0.006 * rate) :]).max() > 0.3


@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize(("count", "rate"), [(0, 44100), (7, 24000), (2048, 44100), (59392, 24000), (100_001, 48000)])
async def test_lengths_at_any_speed_are_exact(speed, count, rate):
    first = min(count, 8192)
    out = await _convert(_tone(count), rate, [first, count - first], speed)
    assert len(out) == wire_length(count, rate, speed) == int(np.floor(count * rate / (44100 * speed) + 0.5))


@pytest.mark.parametrize("speed", SPEEDS)
async def test_speed_keeps_the_pitch(speed):
    """Ten seconds of a tone stay one tone of its pitch, whatever their length becomes."""
    out = await _convert(_tone(441_000), 24000, [8192, *[51200] * 8, 23208], speed)
    assert len(out) == round(240_000 / speed)
    rate, middle = 24000, out[len(out) // 10 : -len(out) // 10]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
    assert abs(spectrum.argmax() * rate / len(middle) - 440) < 1
    assert np.sqrt(np.mean(middle**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.05)


@pytest.mark.parametrize("speed", SPEEDS)
async def test_at_any_speed_a_sound_is_where_it_belongs(speed):
    """A burst keeps its place in proportion, also the one at the very end, and nothing stands before it."""
    samples = np.zeros(132_300, np.float32)
    for start in (44_100, 130_000):
        samples[start : start + 2300] = _tone(2300)
    out = np.abs(await _convert(samples, 44100, [8192, 51200, 51200, 21708], speed))
    loud, window = np.flatnonzero(out > 0.1), 2048 / min(speed, 1)
    assert abs(loud[0] - 44_100 / speed) < window
    assert len(out) - loud[-1] < window
    assert out[: loud[0] - 2048].max(initial=0) < 0.01


@pytest.mark.parametrize("speed", SPEEDS)
async def test_at_any_speed_the_first_piece_is_heard_before_the_second_comes(speed):
    first = await SegmentConverter(44100, speed).convert(_tone(8192), False)
    windows = 1 if 0.5 <= speed <= 2 else 2
    assert len(first) > (8192 - windows * 4000) / speed
