"""A client with nothing but a WebSocket library, on the gateway's own protocol."""

from __future__ import annotations

import json
from pathlib import Path

import websockets
from scripting import main, websocket_url


async def speak(url: str, text: str, config: dict) -> dict:
    """Say a text -> types of the messages; the audio is in `audio.pcm`."""
    types, audio = [], []
    async with websockets.connect(f"{websocket_url(url)}/v1/stream") as socket:
        for message in (
            {"type": "session.config", **config},
            {"type": "input.text", "text": text},
            {"type": "input.done"},
        ):
            await socket.send(json.dumps(message))
        while not types or types[-1] not in ("session.done", "error"):
            message = await socket.recv()
            if isinstance(message, bytes):
                audio.append(message)
            else:
                types.append(json.loads(message)["type"])
    Path("audio.pcm").write_bytes(b"".join(audio))
    return {"types": types}


if __name__ == "__main__":
    main(speak)
