"""Files become samples, or are refused with the reason; the decoder runs in a process with bounds."""

from __future__ import annotations

import base64
import io
import time

import numpy as np
import pytest
import soundfile
from recordings import RATE, resampled, sound_file, speech, wav, webm

from gateway.voices.recording import read_recording
from gateway.voices.recording_process import decode_recording
from gateway.voices.recording_rules import BadRecording


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Of the loudness of 20-ms windows: files of lossy codecs are the same speech, not the same samples."""
    n = min(len(a), len(b)) // 882 * 882
    return float(np.corrcoef(a[:n].reshape(-1, 882).std(axis=1), b[:n].reshape(-1, 882).std(axis=1))[0, 1])


SAME = {
    "wav": lambda s: wav(s),
    "24 bit": lambda s: wav(s, subtype="PCM_24"),
    "float": lambda s: wav(s, subtype="FLOAT"),
    "mu-law": lambda s: wav(s, subtype="ULAW"),
    "stereo": lambda s: wav(np.stack((s, s), axis=1)),
    "16 kHz": lambda s: wav(resampled(s, 16000), 16000),
    "flac": lambda s: sound_file(s, "FLAC"),
    "flac, 96 kHz": lambda s: sound_file(resampled(s, 96000), "FLAC", 96000),
    "vorbis": lambda s: sound_file(s, "OGG", subtype="VORBIS"),
    "opus": lambda s: sound_file(resampled(s, 48000), "OGG", 48000, subtype="OPUS"),
    "mp3": lambda s: sound_file(s, "MP3"),
    "webm": lambda s: webm(resampled(s, 48000)),
}


@pytest.mark.parametrize("kind", SAME)
def test_every_container_gives_the_same_speech(kind):
    samples = read_recording(SAME[kind](speech()), RATE)
    assert samples.dtype == np.float32 and samples.ndim == 1
    assert abs(len(samples) - len(speech())) < 0.1 * RATE
    assert correlation(samples, speech()) > 0.97
    assert abs(20 * np.log10(samples.std() / speech().std())) < 0.5


def test_a_picture_in_a_music_file_is_no_film():
    png = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    )
    picture = b"\0image/png\0\3\0" + png
    frame = b"APIC" + len(picture).to_bytes(4, "big") + b"\0\0" + picture
    tag = b"ID3\3\0\0" + bytes((0, 0, len(frame) >> 7, len(frame) & 127)) + frame
    samples = read_recording(tag + sound_file(speech(), "MP3"), RATE)
    assert correlation(samples, speech()) > 0.97


def spoilt(value: float) -> np.ndarray:
    samples = speech().copy()
    samples[5000:5010] = value
    return samples


def bomb() -> bytes:
    """Minutes of nothing in a FLAC file of some ten kilobytes."""
    file = io.BytesIO()
    with soundfile.SoundFile(file, "w", 96_000, 2, format="FLAC") as flac:
        for _ in range(20):
            flac.write(np.zeros((96_000 * 10, 2), np.int16))
    return file.getvalue()


BAD = {
    "empty": (lambda: b"", "empty"),
    "text": (lambda: b"Hello there, this is no sound at all." * 100, "no WAV, MP3"),
    "another container": (lambda: sound_file(speech(), "AIFF"), "no WAV, MP3"),
    "a playlist": (lambda: b"#EXTM3U\n#EXTINF:5,\nfile:///etc/passwd\n", "no WAV, MP3"),
    "wrong magic": (lambda: b"OggS" + sound_file(speech(), "FLAC")[4:], "damaged"),
    "magic alone": (lambda: b"fLaC", "damaged"),
    "cut off wav": (lambda: wav(speech())[:200_000], "cut off"),
    "cut off flac": (lambda: sound_file(speech(), "FLAC")[:60_000], "damaged|cut off"),
    "noise behind a header": (lambda: sound_file(speech(), "FLAC")[:100] + np.random.default_rng(1).bytes(99_999),
                              "damaged|cut off|0.00 s"),
    "half a second": (lambda: wav(speech()[: RATE // 2]), "0.50 s long; it must be from 1 to 30 s"),
    "31 s": (lambda: wav(np.tile(speech(), 10)[: 31 * RATE]), "longer than 30 s"),
    "silent": (lambda: wav(np.zeros(3 * RATE)), "silent"),
    "a constant": (lambda: wav(np.full(3 * RATE, 0.5)), "silent"),
    "very quiet": (lambda: wav(speech() * 0.01, subtype="FLOAT"), "far too quiet"),
    "clipped": (lambda: wav(np.clip(speech() * 20, -1, 1)), "clipped"),
    "not a number": (lambda: wav(spoilt(np.nan), subtype="FLOAT"), "no numbers"),
    "infinite": (lambda: wav(spoilt(np.inf), subtype="FLOAT"), "no numbers"),
    "8 channels": (lambda: wav(np.tile(speech()[:, None], (1, 8))), "8 channels"),
    "a film": (lambda: webm(resampled(speech(), 48000), video=True), "video"),
    "minutes in a small file": (bomb, "longer than 30 s"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_refused_with_the_reason(kind):
    make, reason = BAD[kind]
    with pytest.raises(BadRecording, match=reason):
        read_recording(make(), RATE)


async def test_the_decoder_runs_elsewhere():
    np.testing.assert_array_equal(await decode_recording(wav(speech()), RATE), read_recording(wav(speech()), RATE))
    begin = time.monotonic()
    with pytest.raises(BadRecording, match="longer than 30 s"):
        await decode_recording(bomb(), RATE)
    assert time.monotonic() - begin < 20


async def test_what_takes_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr("gateway.voices.recording_process._PATIENCE_S", 0.01)
    with pytest.raises(BadRecording, match="too long"):
        await decode_recording(wav(speech()), RATE)


async def test_a_decoder_that_breaks_means_a_bad_file(monkeypatch):
    """One that is killed, or runs into a bound, is no fault of ours."""
    monkeypatch.setattr(
        "gateway.voices.recording_process._ONE_THREAD", {"PYTHONPATH": "/nowhere", "PYTHONHOME": "/nowhere"}
    )
    with pytest.raises(BadRecording, match="cannot be decoded"):
        await decode_recording(wav(speech()), RATE)
