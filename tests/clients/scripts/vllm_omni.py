"""Cases for the messages that vLLM-Omni documents for `/v1/audio/speech/stream`, as its example client sends them.

Each utterance leaves one file for each of its units, `UTTERANCE-SENTENCE.audio`.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import websockets
from scripting import main, websocket_url

PATH = "/v1/audio/speech/stream"


async def listen(socket: websockets.ClientConnection) -> list[dict]:
    """The messages of one utterance, as that client reads them: what is binary belongs to the last `audio.start`."""
    messages, pieces = [], []
    while not messages or messages[-1]["type"] != "session.done":
        message = await socket.recv()
        if isinstance(message, bytes):
            pieces.append(message)
            continue
        messages.append(json.loads(message))
        if messages[-1]["type"] == "audio.start":
            pieces = []
        elif messages[-1]["type"] == "audio.done":
            done = messages[-1]
            Path(f"{done['utterance_index']}-{done['sentence_index']}.audio").write_bytes(b"".join(pieces))
            done["pieces"] = len(pieces)
    return messages


async def turns(url: str, texts: list[str], config: dict, word_by_word: bool = False, pause_s: float = 0.0) -> dict:
    """Each text is an utterance on one connection."""
    messages = []
    async with websockets.connect(websocket_url(url) + PATH) as socket:
        await socket.send(json.dumps({"type": "session.config", **config}))
        for turn, text in enumerate(texts):
            if turn:
                await asyncio.sleep(pause_s)
            listening = asyncio.create_task(listen(socket))
            pieces = [f"{word} " for word in text.split(" ")] if word_by_word else [text]
            for piece in pieces:
                await socket.send(json.dumps({"type": "input.text", "text": piece}))
            await socket.send(json.dumps({"type": "input.done"}))
            messages.append(await listening)
        await socket.send(json.dumps({"type": "session.close"}))
        await socket.wait_closed()
        return {"messages": messages, "closed": socket.close_code}


async def leaves(url: str, text: str, config: dict) -> dict:
    """Goes away at the first audio, which is how this protocol interrupts."""
    async with websockets.connect(websocket_url(url) + PATH) as socket:
        await socket.send(json.dumps({"type": "session.config", **config}))
        await socket.send(json.dumps({"type": "input.text", "text": text}))
        await socket.send(json.dumps({"type": "input.done"}))
        while not isinstance(await socket.recv(), bytes):
            pass
    return {}


async def refused(url: str, config: dict) -> dict:
    """What is said of a first config, and how the connection ends."""
    async with websockets.connect(websocket_url(url) + PATH) as socket:
        await socket.send(json.dumps({"type": "session.config", **config}))
        message = json.loads(await socket.recv())
        await socket.wait_closed()
        return {"message": message, "closed": socket.close_code}


if __name__ == "__main__":
    main(turns, leaves, refused)
