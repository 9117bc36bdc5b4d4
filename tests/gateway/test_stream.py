"""The native endpoint over a real socket: what is spoken, in which order, in which pieces."""

from __future__ import annotations

import numpy as np
from scripted_engine import FRAME_SAMPLES, ScriptedEngine, frames_for, ramp

TEXT = "This is the first sentence of a text. Here is another one that follows it, with a clause. And the last."


def _samples(text: str) -> int:
    return frames_for(text) * FRAME_SAMPLES


async def test_a_text_is_spoken_whole_and_in_order(gateway):
    async with await gateway.client() as client:
        for word in TEXT.split(" "):
            await client.say("input.text", text=word if word == "This" else " " + word)
        await client.say("input.done")
        heard = await client.whole("_0")
    assert heard.types[:3] == ["audio.start", "audio.segment", "audio"]
    assert heard.types[-3:] == ["audio", "audio.done", "session.done"]
    assert heard.text == TEXT
    expected = b"".join((ramp(0, _samples(s["spoken"])) * 32767).round().astype("<i2").tobytes() for s in heard.all("audio.segment"))
    assert heard.audio == expected
    done = heard.all("audio.done")[0]
    assert (done["total_bytes"], done["samples"], done["error"]) == (len(expected), len(expected) // 2, None)
    assert heard.end["reason"] == "done" and heard.end["seed"] == 42
    assert heard.end["usage"]["input_characters"] == len(TEXT)
    assert heard.end["usage"]["audio_frames"] * FRAME_SAMPLES == done["samples"]
