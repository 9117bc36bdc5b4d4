"""Cases for `elevenlabs`: its clients of requests and of `stream-input`, and its messages of `multi-stream-input`.

Over TLS, as the package takes no other WebSocket; it trusts what SSL_CERT_FILE says.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path

from elevenlabs import VoiceSettings
from elevenlabs.client import AsyncElevenLabs, ElevenLabs
from elevenlabs.core.api_error import ApiError
from elevenlabs.types import (
    CloseContext,
    CloseSocket,
    FlushContext,
    InitialiseContext,
    KeepContextAlive,
    SendTextMulti,
    WebsocketTtsServerMessageMulti,
)
from elevenlabs.url_utils import build_ws_url
from scripting import main
from websockets.sync.client import ClientConnection, connect

KEY = "a-key"


def client_of(url: str, key: str = KEY) -> ElevenLabs:
    return ElevenLabs(base_url=url, api_key=key)


def convert(
    url: str, texts: list[str], voice: str, pause_s: float = 0.0, speed: float | None = None, **options
) -> None:
    """Each text is a request of one client; `0.audio`, `1.audio`, … are the answers."""
    client = client_of(url)
    if speed is not None:
        options["voice_settings"] = VoiceSettings(stability=0.5, speed=speed)
    for turn, text in enumerate(texts):
        if turn:
            time.sleep(pause_s)
        Path(f"{turn}.audio").write_bytes(b"".join(client.text_to_speech.convert(voice, text=text, **options)))


def stream(url: str, texts: list[str], voice: str, **options: object) -> None:
    client = client_of(url)
    for turn, text in enumerate(texts):
        Path(f"{turn}.audio").write_bytes(b"".join(client.text_to_speech.stream(voice, text=text, **options)))


async def convert_async(url: str, texts: list[str], voice: str, **options: object) -> None:
    client = AsyncElevenLabs(base_url=url, api_key=KEY)
    for turn, text in enumerate(texts):
        pieces = [piece async for piece in client.text_to_speech.convert(voice, text=text, **options)]
        Path(f"{turn}.audio").write_bytes(b"".join(pieces))


def timed(url: str, text: str, voice: str) -> dict:
    """What is told of characters: in one answer, and in a stream."""
    client = client_of(url)
    whole = client.text_to_speech.convert_with_timestamps(voice, text=text, output_format="pcm_24000")
    parts = list(client.text_to_speech.stream_with_timestamps(voice, text=text, output_format="pcm_24000"))
    Path("0.audio").write_bytes(base64.b64decode(whole.audio_base_64))
    Path("1.audio").write_bytes(b"".join(base64.b64decode(part.audio_base_64) for part in parts))
    streamed = [character for part in parts if part.alignment for character in part.alignment.characters]
    return {
        "whole": "".join(whole.alignment.characters),
        "streamed": "".join(streamed),
        "end": whole.alignment.character_end_times_seconds[-1],
    }


def leaves(url: str, text: str, voice: str) -> None:
    """Goes away at the first audio."""
    audio = client_of(url).text_to_speech.stream(voice, text=text, output_format="pcm_24000")
    next(audio)
    audio.close()


def realtime(url: str, words: list[str], voice: str, **options: object) -> None:
    audio = client_of(url).text_to_speech.convert_realtime(voice, text=iter(words), **options)
    Path("0.audio").write_bytes(b"".join(audio))


def voices(url: str) -> dict:
    client = client_of(url)
    return {
        "all": [(voice.voice_id, voice.category) for voice in client.voices.get_all().voices],
        "found": [voice.voice_id for voice in client.voices.search(search="bo").voices],
        "one": client.voices.get("bo").name,
        "models": [(model.model_id, model.can_do_text_to_speech) for model in client.models.list()],
    }


def fails(url: str, key: str = KEY, text: str = "Hello.", voice: str = "ada", realtime: bool = False, **more) -> dict:
    """The error that a call ends with, and what is in it."""
    speech = client_of(url, key).text_to_speech
    try:
        if realtime:
            list(speech.convert_realtime(voice, text=iter([text]), **more))
        else:
            list(speech.convert(voice, text=text, **more))
    except ApiError as error:
        return {"status": error.status_code, "body": error.body}
    return {"status": None}


# Several contexts: the package has the messages of these, and no client -----------------------------------------------


def multi_socket(url: str, **query: object) -> ClientConnection:
    query = {"output_format": "pcm_24000", **query}
    path = ["v1", "text-to-speech", "ada", "multi-stream-input"]
    return connect(build_ws_url(url, path, query), additional_headers={"xi-api-key": KEY})


def say(socket: ClientConnection, *messages: object) -> None:
    for message in messages:
        socket.send(json.dumps(message.dict(exclude_none=True)))


def heard(socket: ClientConnection) -> Iterator[tuple[str, bytes, bool]]:
    """(context, audio, whether it is the last of the context)."""
    for data in socket:
        fields = json.loads(data)
        message = WebsocketTtsServerMessageMulti(**fields)
        yield fields["contextId"], base64.b64decode(message.audio or ""), fields["isFinal"] is True


def speak(socket: ClientConnection, context: str, text: str) -> bytes:
    """A turn to its end."""
    opened = InitialiseContext(text=" ", context_id=context)
    flushed = FlushContext(context_id=context, flush=True)
    closed = CloseContext(context_id=context, close_context=True)
    say(socket, opened, SendTextMulti(text=text, context_id=context), flushed, closed)
    audio = b""
    for name, data, is_last in heard(socket):
        assert name == context, f"audio of {name}"
        audio += data
        if is_last:
            return audio
    raise AssertionError("the server has closed")


def multi(url: str, texts: list[str], pause_s: float = 0.0, keep_alive_s: float = 1e9, **query: object) -> dict:
    """Turns on one connection, with keep-alives in between."""
    with multi_socket(url, **query) as socket:
        for turn, text in enumerate(texts):
            until = time.monotonic() + (pause_s if turn else 0)
            while (left := until - time.monotonic()) > 0:
                time.sleep(min(left, keep_alive_s))
                say(socket, KeepContextAlive(text="", context_id="idle"))
            Path(f"{turn}.audio").write_bytes(speak(socket, f"turn {turn}", text))
        say(socket, CloseSocket(close_socket=True))
        rest = list(socket)
    return {"rest": len(rest), "code": socket.close_code}


def barge_in(url: str, first: str, second: str) -> dict:
    """The first turn is interrupted at its first audio."""
    with multi_socket(url) as socket:
        say(socket, InitialiseContext(text=" ", context_id="a"), SendTextMulti(text=first, context_id="a", flush=True))
        audio, messages = b"", heard(socket)
        audio += next(messages)[1]
        close = CloseContext(context_id="a", close_context=True)
        say(socket, close, close)  # the first would let the flushed text be spoken to its end
        for name, data, is_last in messages:
            assert name == "a"
            audio += data
            if is_last:
                break
        Path("0.audio").write_bytes(audio)
        Path("1.audio").write_bytes(speak(socket, "b", second))
    return {}


if __name__ == "__main__":
    main(convert, stream, convert_async, timed, leaves, realtime, voices, fails, multi, barge_in)
