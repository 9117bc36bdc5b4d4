"""Whom does an uploaded voice sound like?  The embedded model's own voices, and one that it never heard.

A voice by name is that of its recording; one that is uploaded goes through the codec's encoder, which is weak (see
inference/embedded/README.md), so what is asserted of those is what it can do.  Figures: tests/bench/README.md.
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


@pytest.mark.slow
async def test_voices_are_like_their_recordings(tmp_path_factory):
    other, rate = espeak(OTHER)
    async with serving() as (port, _):
        for voice in VOICES:
            await upload(port, f"my-{voice}", speech(voice), said_by(voice))
        await upload(port, "my-espeak", other, OTHER, rate)
        names = (*VOICES, *(f"my-{voice}" for voice in VOICES), "my-espeak")
        heard = {name: await spoken(port, name, TEXT) for name in names}
    judge = recogniser(tmp_path_factory.mktemp("whisper"))
    recorded = {voice: (speech(voice), RATE) for voice in VOICES} | {"espeak": (other, rate)}
    prints = {voice: embedding(*recording) for voice, recording in recorded.items()}
    hertz = {voice: pitch(*recording) for voice, recording in recorded.items()}
    for name, samples in heard.items():
        high, own = pitch(samples, RATE), embedding(samples, RATE)
        alike = {voice: round(likeness(own, prints[voice]), 2) for voice in prints}
        errors = word_errors([TEXT], [transcript(judge, samples, RATE)])
        nearest = min(hertz, key=lambda voice: abs(np.log(hertz[voice] / high)))
        print(f"{name}: {high:.0f} Hz (nearest {nearest}), {alike}, word error rate {100 * errors:.1f} %")
    print({voice: round(value) for voice, value in hertz.items()})
