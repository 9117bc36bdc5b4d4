"""Cases for `deepgram-sdk`: its synchronous and asynchronous clients of `/v1/speak` and `/v2/speak`.

Each leaves the audio of its turns as `0.pcm`, `1.pcm`, … and returns what else came.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from deepgram import AsyncDeepgramClient, DeepgramClient
from deepgram.core.api_error import ApiError
from deepgram.core.events import EventType
from deepgram.environment import DeepgramClientEnvironment
from deepgram.speak.v1.types import SpeakV1Text
from deepgram.speak.v2.types import SpeakV2Configure, SpeakV2Interrupt, SpeakV2Speak
from scripting import main, websocket_url
from websockets.exceptions import InvalidStatus

KEY = "a-key"


def client_of(url: str, kind: type = DeepgramClient, key: str = KEY) -> DeepgramClient | AsyncDeepgramClient:
    sockets = websocket_url(url)
    environment = DeepgramClientEnvironment(base=url, production=sockets, agent=sockets, agent_rest=url)
    return kind(api_key=key, environment=environment)


def kept(turn: int, pieces: list[bytes]) -> None:
    Path(f"{turn}.pcm").write_bytes(b"".join(pieces))


def told(message: object) -> dict:
    return message if isinstance(message, dict) else message.dict()


def until(socket: object, last: str, pieces: list[bytes]) -> list[dict]:
    """All messages up to one of type `last`; audio goes to `pieces`."""
    messages: list[dict] = []
    while not messages or messages[-1]["type"] != last:
        message = socket.recv()
        pieces.append(message) if isinstance(message, bytes) else messages.append(told(message))
    return messages


async def until_async(socket: object, last: str, pieces: list[bytes]) -> list[dict]:
    messages: list[dict] = []
    while not messages or messages[-1]["type"] != last:
        message = await socket.recv()
        pieces.append(message) if isinstance(message, bytes) else messages.append(told(message))
    return messages


def aura(url: str, texts: list[str], pause_s: float = 0.0, **options: object) -> dict:
    """Each text is a turn on one connection, with a pause between them."""
    messages = []
    with client_of(url).speak.v1.connect(**options) as socket:
        for turn, text in enumerate(texts):
            pieces: list[bytes] = []
            if turn:
                time.sleep(pause_s)
            socket.send_text(SpeakV1Text(text=text))
            socket.send_flush()
            messages += until(socket, "Flushed", pieces)
            kept(turn, pieces)
        socket.send_close()
    return {"messages": messages}


async def aura_async(url: str, texts: list[str], **options: object) -> dict:
    """As `aura`, word by word."""
    messages = []
    async with client_of(url, AsyncDeepgramClient).speak.v1.connect(**options) as socket:
        for turn, text in enumerate(texts):
            pieces: list[bytes] = []
            for word in text.split():
                await socket.send_text(SpeakV1Text(text=f"{word} "))
            await socket.send_flush()
            messages += await until_async(socket, "Flushed", pieces)
            kept(turn, pieces)
        await socket.send_close()
    return {"messages": messages}


def aura_barge_in(url: str, first: str, second: str, **options: object) -> dict:
    """The first text is cleared at its first audio, with its flush unanswered; `0.pcm` is what came of it."""
    pieces: list[bytes] = []
    with client_of(url).speak.v1.connect(**options) as socket:
        socket.send_text(SpeakV1Text(text=first))
        socket.send_flush()
        while not pieces:
            message = socket.recv()
            if isinstance(message, bytes):
                pieces.append(message)
        socket.send_clear()
        messages = until(socket, "Cleared", pieces)
        kept(0, pieces)
        pieces = []
        socket.send_text(SpeakV1Text(text=second))
        socket.send_flush()
        messages += until(socket, "Flushed", pieces)
        kept(1, pieces)
    return {"messages": messages}


def aura_events(url: str, raw: str, **options: object) -> dict:
    """What the client's callbacks are told after a message that the SDK would not send."""
    events: list[list[str]] = []
    with client_of(url).speak.v1.connect(**options) as socket:
        for event in (EventType.OPEN, EventType.MESSAGE, EventType.ERROR, EventType.CLOSE):
            socket.on(event, lambda what, event=event: events.append([event.value, str(what)]))
        socket._send(raw)
        socket.start_listening()
    return {"events": events}


def refused(url: str, key: str = KEY, **options: object) -> dict:
    """Why a connection is refused: the package lets the error of its WebSocket library through."""
    try:
        with client_of(url, key=key).speak.v1.connect(**options):
            return {}
    except InvalidStatus as error:
        return {"status": error.response.status_code, "body": json.loads(error.response.body)}


def flux(url: str, texts: list[str], speeds: list[float] | None = None, **options: object) -> dict:
    """Each text is a turn, for which a speed may be set."""
    messages = []
    with client_of(url).speak.v2.connect(**options) as socket:
        for turn, text in enumerate(texts):
            pieces: list[bytes] = []
            if speeds:
                socket.send_configure(SpeakV2Configure(speed=speeds[turn]))
            socket.send_speak(SpeakV2Speak(text=text))
            socket.send_flush()
            messages += until(socket, "SpeechMetadata", pieces)
            kept(turn, pieces)
        socket.send_close()
        messages += until(socket, "SessionMetadata", [])
    return {"messages": messages}


async def flux_barge_in(url: str, first: str, second: str, offset_ms: int | None, **options: object) -> dict:
    """The first turn is interrupted at its first audio, while it is still being written."""
    pieces: list[bytes] = []
    async with client_of(url, AsyncDeepgramClient).speak.v2.connect(**options) as socket:
        await socket.send_speak(SpeakV2Speak(text=first))
        while not pieces:
            message = await socket.recv()
            if isinstance(message, bytes):
                pieces.append(message)
        offset = None if offset_ms is None else {"type": "time_ms", "value": offset_ms}
        await socket.send_interrupt(SpeakV2Interrupt(playback_offset=offset))
        messages = await until_async(socket, "SpeechInterrupted", pieces)
        kept(0, pieces)
        pieces = []
        await socket.send_speak(SpeakV2Speak(text=second))
        await socket.send_flush()
        messages += await until_async(socket, "SpeechMetadata", pieces)
        kept(1, pieces)
        await socket.send_close()
        messages += await until_async(socket, "SessionMetadata", [])
    return {"messages": messages}


def rest(url: str, text: str, version: int = 1, **options: object) -> dict:
    """The answer to a request is `0.pcm`, whatever it is; an error is told."""
    speak = client_of(url).speak
    try:
        pieces = list((speak.v1 if version == 1 else speak.v2).audio.generate(text=text, **options))
    except ApiError as error:
        return {"status": error.status_code, "body": error.body}
    kept(0, pieces)
    return {}


async def rest_async(url: str, text: str, **options: object) -> dict:
    pieces = [
        piece async for piece in client_of(url, AsyncDeepgramClient).speak.v1.audio.generate(text=text, **options)
    ]
    kept(0, pieces)
    return {}


if __name__ == "__main__":
    main(aura, aura_async, aura_barge_in, aura_events, refused, flux, flux_barge_in, rest, rest_async)
