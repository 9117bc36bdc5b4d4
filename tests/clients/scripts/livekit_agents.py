"""Cases for `livekit-agents`: our adapter and LiveKit's plugins for ElevenLabs, Deepgram and OpenAI.

Each leaves the audio of its turns as `0.pcm`, `1.pcm`, … and returns what else came.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from livekit.agents import APIConnectOptions, APIError, tts
from livekit.agents.types import USERDATA_TIMED_TRANSCRIPT
from livekit.plugins import deepgram, elevenlabs, openai
from scripting import main, websocket_url

from gateway.integrations import livekit as ours

KEY = "a-key"
ONCE = APIConnectOptions(max_retry=0)


@asynccontextmanager
async def speaker(url: str, kind: str, voice: str = "ada", key: str = KEY, **options: object) -> AsyncIterator[tts.TTS]:
    """The TTS of a kind, pointed at the gateway, as a program sets it up."""
    async with aiohttp.ClientSession() as session:
        if kind == "ours":
            made = ours.TTS(url=f"{websocket_url(url)}/v1/stream", api_key=key, voice=voice, **options)
        elif kind == "elevenlabs":
            made = elevenlabs.TTS(
                base_url=f"{url}/v1", api_key=key, voice_id=voice, encoding="pcm_24000", http_session=session, **options
            )
        elif kind == "deepgram":
            made = deepgram.TTS(base_url=f"{url}/v1/speak", api_key=key, model=voice, http_session=session, **options)
        elif kind == "flux":
            made = deepgram.TTSv2(base_url=f"{url}/v2/speak", api_key=key, model=voice, http_session=session, **options)
        else:
            made = openai.TTS(base_url=f"{url}/v1", api_key=key, voice=voice, response_format="pcm", **options)
        try:
            yield made
        finally:
            await made.aclose()


async def heard(stream: tts.SynthesizeStream | tts.ChunkedStream, turn: int) -> dict:
    """All of a turn's audio goes to its file."""
    told: dict = {"rates": [], "segments": []}
    pieces = []
    async for event in stream:
        pieces.append(bytes(event.frame.data.cast("b")))
        told["rates"].append(event.frame.sample_rate)
        for timed in event.frame.userdata.get(USERDATA_TIMED_TRANSCRIPT) or []:
            told["segments"].append([str(timed), timed.start_time])
    Path(f"{turn}.pcm").write_bytes(b"".join(pieces))
    return told | {"rates": sorted(set(told["rates"]))}


async def say(made: tts.TTS, text: str, turn: int, timeout: float = 10.0, retries: int = 0) -> dict:
    """Word by word where the plugin can, else whole."""
    chosen = APIConnectOptions(max_retry=retries, timeout=timeout, retry_interval=0.1)
    if not made.capabilities.streaming:
        async with made.synthesize(text, conn_options=chosen) as stream:
            return await heard(stream, turn)
    async with made.stream(conn_options=chosen) as stream:
        for word in text.split():
            stream.push_text(f"{word} ")
        stream.end_input()
        return await heard(stream, turn)


async def turns(url: str, kind: str, texts: list[str], pause_s: float = 0.0, **given: object) -> list[dict]:
    """Each text is a stream of its own, with a pause between them."""
    told = []
    async with speaker(url, kind, **given) as made:
        for turn, text in enumerate(texts):
            if turn:
                await asyncio.sleep(pause_s)
            told.append(await say(made, text, turn))
    return told


async def whole(url: str, kind: str, text: str, **given: object) -> dict:
    """`synthesize`, for a text that is known."""
    async with speaker(url, kind, **given) as made, made.synthesize(text, conn_options=ONCE) as stream:
        return await heard(stream, 0)


async def flushed(url: str, kind: str, text: str, **given: object) -> dict:
    """The text is flushed, with the stream left open until audio came."""
    async with speaker(url, kind, **given) as made, made.stream(conn_options=ONCE) as stream:
        stream.push_text(text)
        stream.flush()
        first = await anext(stream)
        stream.end_input()
        told = await heard(stream, 0)
    return told | {"first": first.frame.duration}


async def barge_in(url: str, kind: str, first: str, second: str, **given: object) -> dict:
    """The first stream is closed at its first audio, as LiveKit does it, and another one speaks."""
    async with speaker(url, kind, **given) as made:
        async with made.stream(conn_options=ONCE) as stream:
            stream.push_text(first)
            await anext(stream)
        return await say(made, second, 1)


async def fails(url: str, kind: str, text: str, retries: int = 0, timeout: float = 10.0, **given: object) -> dict:
    """The exception, and what the listeners of `error` are told."""
    events: list[list] = []
    async with speaker(url, kind, **given) as made:
        made.on("error", lambda event: events.append([type(event.error).__name__, event.recoverable]))
        try:
            await say(made, text, 0, timeout, retries)
        except APIError as error:
            return {
                "error": type(error).__name__, "message": str(error), "retryable": error.retryable,
                "status": getattr(error, "status_code", None), "body": error.body, "events": events,
            }  # fmt: skip
    return {"error": None, "events": events}


if __name__ == "__main__":
    main(turns, whole, flushed, barge_in, fails)
