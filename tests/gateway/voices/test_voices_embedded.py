"""Voices made of recordings, with the embedded model: the same codes from every container, and the right voice.

Its encoder was taught on its own four voices and is weak: the voice that it makes of a recording may be some tones off,
and clara's becomes as high as juno's.  So the highest and the lowest voice are told apart, and no more.
"""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import torch
from embedded import serving
from recogniser import recogniser, transcript
from recordings import RATE, resampled, sound_file, speech, wav, webm
from recordings import transcript as said_by
from uploading import spoken, upload
from voice_measures import pitch

from gateway.voices.recording import read_recording
from inference.checkpoint import Checkpoint

SENTENCE = "The garden behind our house is full of birds."
VOICES = ("juno", "milo")  # the highest and the lowest


@pytest.fixture(scope="module")
def codec():
    return Checkpoint.open(None).load_codec("float32")


def test_every_container_gives_nearly_the_same_codes(codec):
    def codes(file: bytes) -> np.ndarray:
        with torch.inference_mode():
            return codec.encode(torch.from_numpy(read_recording(file, RATE))[None])[0].numpy()

    voice = speech("milo")
    expected = codes(wav(voice))
    files = {
        "stereo": wav(np.stack((voice, voice), axis=1)),
        "flac": sound_file(voice, "FLAC"),
        "mp3": sound_file(voice, "MP3"),
        "vorbis": sound_file(voice, "OGG", subtype="VORBIS"),
        "webm": webm(resampled(voice, 48000)),
    }
    for kind, file in files.items():
        got = codes(file)
        assert abs(got.shape[1] - expected.shape[1]) <= 1, kind
        frames = min(got.shape[1], expected.shape[1])
        assert np.mean(got[0, :frames] == expected[0, :frames]) > 0.7, kind  # of the semantic codebook


async def test_uploaded_voices_speak_as_they_do_and_never_say_the_transcript(tmp_path_factory):
    async with serving() as (port, _):
        for voice in VOICES:
            await upload(port, f"my-{voice}", speech(voice), said_by(voice))
        heard = await asyncio.gather(*(spoken(port, f"my-{voice}", SENTENCE) for voice in VOICES))
    high, low = (pitch(samples, RATE) for samples in heard)
    assert high > 1.15 * low, (high, low)
    judge = recogniser(tmp_path_factory.mktemp("whisper"))
    for voice, samples in zip(VOICES, heard, strict=True):
        words = set(transcript(judge, samples, RATE).lower().replace(".", " ").split())
        assert {"garden", "birds"} & words, (voice, words)
        assert not words & (set(said_by(voice).lower().replace(".", " ").split()) - COMMON), (voice, words)


COMMON = set("the is of our we my and a in was".split())
