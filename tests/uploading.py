"""Voices of a running gateway: how one is uploaded, and what it says."""

from __future__ import annotations

import numpy as np
from aiohttp import ClientSession, FormData
from embedded import STEP
from recordings import RATE, wav
from stream_client import StreamClient


async def upload(port: int, name: str, samples: np.ndarray, text: str, rate: int = RATE) -> None:
    """A voice of this recording."""
    form = FormData({"name": name, "ref_text": text, "consent": "true"})
    form.add_field("audio_sample", wav(samples, rate), filename="voice.wav")
    async with (
        ClientSession() as http,
        http.post(f"http://127.0.0.1:{port}/v1/audio/voices", data=form) as answer,
    ):
        assert answer.status == 201, await answer.text()


async def spoken(port: int, voice: str, text: str) -> np.ndarray:
    """float32 [n] at RATE."""
    async with await StreamClient.open(port) as client:
        await client.say("session.config", voice=voice, seed=5)
        await client.speak(text)
        heard = await client.whole("_0")
    assert heard.end["type"] == "session.done"
    return np.frombuffer(heard.audio, "<i2").astype(np.float32) * STEP
