"""The encoders by themselves: lengths, sound and latency, heard with decoders that are not theirs."""

from __future__ import annotations

import io
import struct
import threading
import wave
from pathlib import Path

import av
import numpy as np
import pytest
from decoding import DELAYS, MP3_DELAY, decibels, decode, deviation, heard_of, tone

from gateway.audio.encoding import open_encoder
from gateway.audio.ogg import OggOpusPages, checksum
from gateway.audio.samples import to_pcm
from protocol.config import SAMPLE_RATES
from protocol.wav import wav_header

KINDS = [("opus", 48000), *((name, rate) for name in ("mp3", "aac", "flac") for rate in SAMPLE_RATES)]
OPUS_LATE = 960 + 312  # samples of a packet, and of look-ahead
kinds = pytest.mark.parametrize(("name", "rate"), KINDS)


def mp3_frame(rate: int) -> int:
    """Samples of a frame."""
    return 1152 if rate >= 32000 else 576


async def encoded(name: str, rate: int, pieces: list[np.ndarray]) -> list[bytes]:
    """What each piece brings, and the rest."""
    encoder = open_encoder(name, rate)
    return [await encoder.encode(piece) for piece in pieces] + [await encoder.finish()]


def cut(samples: np.ndarray, rate: int) -> list[np.ndarray]:
    """As a segment comes: 4 frames, then 25 at a time."""
    first, then = int(8192 * rate / 44100), int(51200 * rate / 44100)
    return np.split(samples, range(first, len(samples), then))


@kinds
@pytest.mark.parametrize("seconds", [0.0005, 0.02, 0.31, 3.007])
async def test_the_end_is_right_to_the_sample(name, rate, seconds):
    """A click in the very last samples is heard where it is, whatever the length."""
    samples = np.zeros(int(seconds * rate), np.float32)
    samples[-3:] = 0.5
    data = b"".join(await encoded(name, rate, cut(samples, rate)))
    heard = heard_of(name, data, rate, len(samples))
    assert abs(int(np.abs(heard).argmax()) - (len(samples) - 2)) <= 3


@kinds
async def test_a_tone_stays_one_tone(name, rate):
    samples = tone(0, 4 * rate, rate)
    data = b"".join(await encoded(name, rate, cut(samples, rate)))
    heard = heard_of(name, data, rate, len(samples))[rate // 5 : -rate // 5]
    noise = deviation(heard, rate)
    assert decibels(heard, noise) > 30
    spectrum = (
        np.abs(np.fft.rfft(noise * np.hanning(len(noise)))) / np.abs(np.fft.rfft(heard * np.hanning(len(heard)))).max()
    )
    assert spectrum.max() < 0.01  # no line of its own, at the chunks' pace or elsewhere


@kinds
async def test_pieces_do_not_change_a_bit_of_the_sound(name, rate):
    samples = tone(0, 2 * rate, rate) + np.random.default_rng(1).normal(0, 0.05, 2 * rate).astype(np.float32)
    whole = b"".join(await encoded(name, rate, [samples]))
    odd = np.split(samples, [1, 2, 400, 401, 5000, 9001])
    pieces = b"".join(await encoded(name, rate, odd))
    assert np.array_equal(decode(whole)[0], decode(pieces)[0])


async def test_the_first_opus_chunk_is_heard_before_the_second_comes():
    """A prefix of whole messages is a file: of 4 frames no more is missing than a packet and the look-ahead."""
    first, *_ = await encoded("opus", 48000, cut(tone(0, 96000, 48000), 48000))
    heard, _ = decode(first)
    assert 8192 * 48000 // 44100 - len(heard) < OPUS_LATE
    assert decibels(heard[960:], deviation(heard[960:], 48000)) > 30


@pytest.mark.parametrize("rate", SAMPLE_RATES)
async def test_mp3_frames_leave_as_soon_as_lame_gives_them(rate):
    """Whole frames, and less than two are missing, besides what a decoder is late."""
    first, *_ = await encoded("mp3", rate, cut(tone(0, 2 * rate, rate), rate))
    frames = av.CodecContext.create("mp3", "r").parse(first + b"\xff")
    assert sum(packet.size for packet in frames) == len(first)
    assert 8192 * rate // 44100 - mp3_frame(rate) * len(frames) < 2 * mp3_frame(rate)


@kinds
async def test_padding_brings_out_all_that_was_given(name, rate):
    encoder = open_encoder(name, rate)
    samples = np.zeros(rate // 3, np.float32)
    samples[-3:] = 0.5
    data = await encoder.encode(samples)
    padding, silence = await encoder.pad()
    heard, _ = decode(data + padding)
    start = DELAYS.get(name, 0)
    assert abs(int(np.abs(heard).argmax()) - start - len(samples) + 2) <= 3
    assert 0 < silence < {"opus": OPUS_LATE, "mp3": 2 * mp3_frame(rate) + MP3_DELAY, "aac": 3072, "flac": 1152}[name]
    assert await encoder.pad() == (b"", 0)
    data += padding + await encoder.encode(samples) + await encoder.finish()
    again = heard_of(name, data, rate, 2 * len(samples) + silence)
    clicks = np.flatnonzero(np.abs(again) > 0.6 * np.abs(again).max())
    assert abs(int(clicks[0]) - len(samples)) <= 6
    assert abs(int(clicks[-1]) - 2 * len(samples) - silence) <= 6


@pytest.mark.parametrize("name", ["mp3", "aac", "flac", "wav"])
async def test_a_prefix_is_a_file(name):
    """Of the first 4 frames less than two blocks are missing, besides what a decoder is late."""
    first, *_ = await encoded(name, 24000, cut(tone(0, 48000, 24000), 24000))
    heard, rate = decode(first)
    assert rate == 24000
    assert 8192 * 24000 // 44100 - len(heard) < 2 * 1152
    heard = heard[DELAYS.get(name, 0) :]
    assert decibels(heard, deviation(heard, 24000)) > 25


async def test_wav_is_to_the_bit_and_leaves_its_length_open():
    data = b"".join(await encoded("wav", 24000, [tone(0, 5000, 24000), tone(5000, 100, 24000)]))
    assert data[4:8] == data[40:44] == b"\xff" * 4
    assert data[44:] == to_pcm(tone(0, 5100, 24000))


async def test_wav_of_a_known_length_is_read_by_the_standard_library():
    samples = to_pcm(tone(0, 1000, 8000))
    with wave.open(io.BytesIO(wav_header(8000, len(samples)) + samples)) as file:
        assert (file.getframerate(), file.getnchannels(), file.readframes(2000)) == (8000, 1, samples)


@pytest.mark.parametrize("name", ["opus", "mp3", "aac", "flac", "wav", "pcm"])
async def test_nothing_becomes_nothing(name):
    encoder = open_encoder(name, 48000)
    assert await encoder.pad() == (b"", 0)
    assert await encoder.finish() == b""


async def test_encoders_have_no_threads_of_their_own():
    """64 listeners must not mean 64 times the machine's cores."""
    tasks = Path(f"/proc/{threading.get_native_id()}/task")
    if not tasks.exists():
        pytest.skip("threads are counted in /proc")
    await encoded("opus", 48000, [tone(0, 4800)])  # the library is loaded, and the pool has its thread
    encoders = [open_encoder(name, 48000) for name in ("opus", "mp3", "aac", "flac") * 2]
    before = len(list(tasks.iterdir()))
    for encoder in encoders:
        await encoder.encode(tone(0, 4800))
    assert len(list(tasks.iterdir())) - before <= len(encoders) // 2  # of the pool at most one for each call


def pages(data: bytes) -> list[tuple[int, int, int, int, list[int]]]:
    """(flags, granule, serial, sequence, lacing) of each; every checksum is looked at, bit by bit."""
    found, at = [], 0
    while at < len(data):
        capture, version, flags, granule, serial, sequence, crc, count = struct.unpack_from("<4sBBqIIIB", data, at)
        assert (capture, version) == (b"OggS", 0)
        lacing = list(data[at + 27 : at + 27 + count])
        size = 27 + count + sum(lacing)
        page = data[at : at + 22] + bytes(4) + data[at + 26 : at + size]
        assert crc == _slow_checksum(page) == checksum(page)
        found.append((flags, granule, serial, sequence, lacing))
        at += size
    return found


def _slow_checksum(page: bytes) -> int:
    crc = 0
    for byte in page:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ 0x04C11DB7 if crc & 0x80000000 else crc << 1) & 0xFFFFFFFF
    return crc


def test_pages_tell_positions_and_the_end():
    writer = OggOpusPages(b"OpusHead", 960)
    first = pages(writer.write([b"a" * 254, b"b" * 255, b"c" * 700]))
    assert [page[:2] for page in first] == [(2, 0), (0, 0), (0, 2880)]
    assert first[2][4] == [254, 255, 0, 255, 255, 190]
    last = pages(writer.write([b"d"], end=3100))
    assert [page[:2] for page in last] == [(4, 3100)]
    assert [page[3] for page in first + last] == [0, 1, 2, 3]
    assert len({page[2] for page in first + last}) == 1


def test_a_page_holds_at_most_255_segments():
    found = pages(OggOpusPages(b"OpusHead", 960).write([b"x" * 600] * 200))
    assert [len(page[4]) for page in found[2:]] == [255, 255, 90]
    assert [page[1] for page in found[2:]] == [85 * 960, 170 * 960, 200 * 960]
