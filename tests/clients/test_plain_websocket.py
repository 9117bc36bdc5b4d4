"""The gateway's own protocol with nothing but a WebSocket library."""

from __future__ import annotations

from tones import LOW, ToneEngine, pitches, seconds

FRAMES = 215  # 10 s


async def test_a_tone_keeps_its_pitch_and_length_at_another_rate(talk, run_gateway):
    async with run_gateway(ToneEngine(frames=lambda text: FRAMES)) as gateway:
        told = await talk(
            "websockets", "plain_websocket.py", "speak", url=gateway.url, text="A tone.", config={"sample_rate": 24000}
        )
    samples = told.pcm("audio.pcm")
    assert len(samples) == round(seconds(FRAMES) * 24000)
    assert set(pitches(samples, 24000)) == {LOW}
    assert told["types"][-2:] == ["audio.done", "session.done"]


async def test_a_recogniser_understands_it(talk, voice_url, understood):
    text = "The quick brown fox jumps over the lazy dog."
    told = await talk("websockets", "plain_websocket.py", "speak", url=voice_url, text=text, config={"seed": 1})
    assert "brown fox jumps over the lazy dog" in understood(told.pcm("audio.pcm"), 44100)
