"""Whom does a voice sound like?  The embedded model's own voices, and one that it never heard.

A voice by name is that of its recording.  One that is uploaded goes through the codec's encoder, which is weak (see
inference/embedded/README.md) and draws all towards one speaker: asserted is what it can do.  Figures:
tests/bench/README.md.
"""

from __future__ import annotations

import numpy as np
import pytest
from embedded import serving
from likeness import embedding, likeness
from other_voice import espeak
from recogniser import recogniser, transcript, word_errors
from recordings import RATE, VOICES, speech
from recordings import transcript as said_by
from uploading import spoken, upload
from voice_measures import pitch

from gateway.bench.prompts import built_in

TEXT = " ".join(built_in()[:8])
OTHER = "The rain has stopped, and the sun comes out over the hills. We could walk to the lake."
UPLOADED = {f"my-{voice}": voice for voice in (*VOICES, "espeak")}
GOOD_WER = 0.08


@pytest.mark.slow
async def test_voices_are_like_their_recordings(tmp_path_factory):
    recorded = {voice: (speech(voice), RATE, said_by(voice)) for voice in VOICES} | {"espeak": (*espeak(OTHER), OTHER)}
    async with serving() as (port, _):
        for name, voice in UPLOADED.items():
            samples, rate, text = recorded[voice]
            await upload(port, name, samples, text, rate)
        heard = {name: await spoken(port, name, TEXT) for name in (*VOICES, *UPLOADED)}
    prints = {voice: embedding(samples, rate) for voice, (samples, rate, _) in recorded.items()}
    hertz = {voice: pitch(samples, rate) for voice, (samples, rate, _) in recorded.items()}
    judge = recogniser(tmp_path_factory.mktemp("whisper"))
    heights, alike = {}, {}
    for name, samples in heard.items():
        heights[name], own = pitch(samples, RATE), embedding(samples, RATE)
        alike[name] = {voice: likeness(own, prints[voice]) for voice in prints}
        errors = word_errors([TEXT], [transcript(judge, samples, RATE)])
        likenesses = ", ".join(f"{voice} {value:.2f}" for voice, value in alike[name].items())
        print(f"{name}: {heights[name]:.0f} Hz, {likenesses}, word error rate {100 * errors:.1f} %")
        assert errors <= GOOD_WER, name
    print("recordings:", ", ".join(f"{voice} {value:.0f} Hz" for voice, value in hertz.items()))

    for voice in VOICES:
        assert min(VOICES, key=lambda other: abs(np.log(hertz[other] / heights[voice]))) == voice
        assert max(VOICES, key=alike[voice].get) == voice
        assert alike[voice][voice] > 0.9
        assert alike[f"my-{voice}"][voice] > 0.8
    by_height = sorted(VOICES, key=hertz.get)
    assert sorted(VOICES, key=lambda voice: heights[f"my-{voice}"]) == by_height
    for voice in ("aria", "juno", "milo"):  # clara's recording gives a voice between hers and aria's
        assert max(VOICES, key=alike[f"my-{voice}"].get) == voice
