"""Cases for `openai`: its synchronous and asynchronous clients of `/v1/audio/speech`."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from pathlib import Path

import openai
from scripting import main

KEY = "a-key"
MODEL = "gpt-4o-mini-tts"


def port_of(answer: openai.HttpxBinaryResponseContent) -> int:
    """Of the connection that an answer came over, on this side."""
    return answer.response.extensions["network_stream"].get_extra_info("client_addr")[1]


def client_of(url: str, kind: type = openai.OpenAI, key: str = KEY) -> openai.OpenAI | openai.AsyncOpenAI:
    return kind(base_url=f"{url}/v1", api_key=key, max_retries=0)


def turns(url: str, texts: list[str], pause_s: float = 0.0, **options: object) -> dict:
    """Each text is a request of one client; `0.audio`, `1.audio`, … are the answers."""
    types, peers = [], []
    with client_of(url) as client:
        for turn, text in enumerate(texts):
            if turn:
                time.sleep(pause_s)
            answer = client.audio.speech.create(model=MODEL, input=text, **options)
            types.append(answer.response.headers["content-type"])
            peers.append(port_of(answer))
            answer.write_to_file(f"{turn}.audio")
    return {"types": types, "peers": peers}


async def turns_async(url: str, texts: list[str], **options: object) -> dict:
    """As `turns`, of the asynchronous client."""
    types, peers = [], []
    async with client_of(url, openai.AsyncOpenAI) as client:
        for turn, text in enumerate(texts):
            answer = await client.audio.speech.create(model=MODEL, input=text, **options)
            types.append(answer.response.headers["content-type"])
            peers.append(port_of(answer))
            Path(f"{turn}.audio").write_bytes(answer.content)
    return {"types": types, "peers": peers}


def streamed(url: str, text: str, **options: object) -> dict:
    """The answer as it comes."""
    with (
        client_of(url) as client,
        client.audio.speech.with_streaming_response.create(model=MODEL, input=text, **options) as answer,
    ):
        pieces = list(answer.iter_bytes())
    Path("0.audio").write_bytes(b"".join(pieces))
    return {"pieces": len(pieces)}


async def streamed_async(url: str, text: str, **options: object) -> dict:
    async with (
        client_of(url, openai.AsyncOpenAI) as client,
        client.audio.speech.with_streaming_response.create(model=MODEL, input=text, **options) as answer,
    ):
        pieces = [piece async for piece in answer.iter_bytes()]
    Path("0.audio").write_bytes(b"".join(pieces))
    return {"pieces": len(pieces)}


def events(url: str, text: str, **options: object) -> dict:
    """`stream_format: sse`; the audio of all events is `0.audio`."""
    audio, kinds, usage = b"", [], None
    with (
        client_of(url) as client,
        client.audio.speech.with_streaming_response.create(
            model=MODEL, input=text, stream_format="sse", **options
        ) as answer,
    ):
        for line in answer.iter_lines():
            if line.startswith("data: "):
                event = json.loads(line.removeprefix("data: "))
                kinds.append(event["type"])
                audio += base64.b64decode(event.get("audio", ""))
                usage = event.get("usage")
    Path("0.audio").write_bytes(audio)
    return {"kinds": kinds, "usage": usage}


def leaves(url: str, text: str, **options: object) -> dict:
    """Goes away at the first audio, by the end of the block."""
    with (
        client_of(url) as client,
        client.audio.speech.with_streaming_response.create(model=MODEL, input=text, **options) as answer,
    ):
        return {"bytes": len(next(answer.iter_bytes()))}


async def cancelled(url: str, text: str, **options: object) -> dict:
    """Goes away at the first audio, as its task is cancelled."""
    async with client_of(url, openai.AsyncOpenAI) as client:
        heard = asyncio.Event()

        async def listen() -> None:
            async with client.audio.speech.with_streaming_response.create(model=MODEL, input=text, **options) as answer:
                async for _ in answer.iter_bytes():
                    heard.set()

        task = asyncio.create_task(listen())
        await heard.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return {"cancelled": task.cancelled()}


def fails(url: str, key: str = KEY, **request: object) -> dict:
    """Which exception a request ends with, and what is in it."""
    request = {"model": MODEL, "input": "Hello.", "voice": "ada", **request}
    try:
        client_of(url, key=key).audio.speech.create(**request)
    except openai.APIStatusError as error:
        told = {"status": error.status_code, "code": error.code, "param": error.param, "message": error.message}
        return {"error": type(error).__name__, **told}
    except openai.APIError as error:
        return {"error": type(error).__name__, "message": str(error)}
    return {"error": None}


def breaks(url: str, text: str, **options: object) -> dict:
    """Which exception the reader of an answer that breaks off gets, after how many bytes."""
    size = 0
    try:
        with (
            client_of(url) as client,
            client.audio.speech.with_streaming_response.create(model=MODEL, input=text, **options) as answer,
        ):
            for piece in answer.iter_bytes():
                size += len(piece)
    except Exception as error:  # the package lets that of its HTTP library through
        return {"error": type(error).__name__, "bytes": size}
    return {"error": None, "bytes": size}


def models(url: str) -> dict:
    """What is listed, the one of a name, and what there is not."""
    client = client_of(url)
    told = {"listed": [model.id for model in client.models.list()], "one": client.models.retrieve(MODEL).id}
    for name, ask in (
        ("unknown", lambda: client.models.retrieve("gpt-9")),
        ("elsewhere", lambda: client.embeddings.create(model=MODEL, input="Hello.")),
        ("method", lambda: client.delete("/audio/speech", cast_to=object)),
    ):
        try:
            ask()
        except openai.APIStatusError as error:
            told[name] = {"error": type(error).__name__, "status": error.status_code, "code": error.code}
    return told


if __name__ == "__main__":
    main(turns, turns_async, streamed, streamed_async, events, leaves, cancelled, fails, breaks, models)
