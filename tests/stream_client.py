"""A client of `/v1/stream` for tests, on a WebSocket library that is not the server's."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import dataclass, field

from websockets.asyncio.client import ClientConnection, connect

TERMINALS = ("session.done", "input.cancelled")
PATIENCE_S = 10.0


def slow_socket(port: int) -> socket.socket:
    """Connected to this machine; takes next to nothing from the network before it is read."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect(("127.0.0.1", port))
    raw.setblocking(False)
    return raw


@dataclass
class Heard:
    """What came of one context: messages in order, binary ones as bytes."""

    messages: list[dict | bytes] = field(default_factory=list)

    @property
    def types(self) -> list[str]:
        """Message types in order, "audio" for a binary one; progress is left out, as it comes by the clock."""
        types = ["audio" if isinstance(message, bytes) else message["type"] for message in self.messages]
        return [kind for kind in types if kind != "session.progress"]

    @property
    def chunks(self) -> list[bytes]:
        return [message for message in self.messages if isinstance(message, bytes)]

    @property
    def audio(self) -> bytes:
        return b"".join(self.chunks)

    @property
    def text(self) -> str:
        return "".join(message["text"] for message in self.all("audio.segment"))

    @property
    def end(self) -> dict:
        return self.messages[-1]

    def all(self, kind: str) -> list[dict]:
        """The messages of one type."""
        return [message for message in self.messages if isinstance(message, dict) and message["type"] == kind]


class StreamClient:
    """Sends messages and sorts what comes by context.  Messages about no context are in `others`."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.contexts: dict[str, Heard] = {}
        self.others: list[dict] = []
        self._speaking: str | None = None

    @classmethod
    async def open(cls, port: int, scheme: str = "ws", **options: object) -> StreamClient:
        """Connect and read `session.ready`, which is kept as `ready`."""
        client = cls(await connect(f"{scheme}://127.0.0.1:{port}/v1/stream", max_size=None, **options))
        client.ready = json.loads(await client.socket.recv())
        return client

    async def __aenter__(self) -> StreamClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.socket.close()

    async def say(self, kind: str, **fields: object) -> None:
        """Send one message."""
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def speak(self, text: str, **fields: object) -> None:
        """A whole context: text and done."""
        await self.say("input.text", text=text, **fields)
        ids = {"context_id": fields["context_id"]} if "context_id" in fields else {}
        await self.say("input.done", **ids)

    async def receive(self) -> dict | bytes:
        """The next message, sorted in."""
        async with asyncio.timeout(PATIENCE_S):
            raw = await self.socket.recv()
        if isinstance(raw, bytes):
            assert self._speaking is not None, "audio outside a context"
            self.contexts[self._speaking].messages.append(raw)
            return raw
        message = json.loads(raw)
        if message["type"] == "audio.start":
            self._speaking = message["context_id"]
        if message["type"] in ("audio.done", "input.cancelled") and message["context_id"] == self._speaking:
            self._speaking = None
        name = message.get("context_id")
        if name is None:
            self.others.append(message)
        else:
            self.contexts.setdefault(name, Heard()).messages.append(message)
        return message

    async def until(self, kind: str, **fields: object) -> dict:
        """Read on to a message of that type and those fields."""
        while True:
            message = await self.receive()
            if isinstance(message, dict) and message["type"] == kind and fields.items() <= message.items():
                return message

    async def until_audio(self) -> bytes:
        """Read on to a binary message."""
        while not isinstance(message := await self.receive(), bytes):
            pass
        return message

    async def whole(self, name: str) -> Heard:
        """Read on to the terminal message of a context."""
        while not self.is_over(name):
            await self.receive()
        return self.contexts[name]

    def is_over(self, name: str) -> bool:
        messages = self.contexts[name].messages if name in self.contexts else []
        return any(isinstance(m, dict) and (m["type"] in TERMINALS or m["type"] == "error") for m in messages)

    async def pong(self) -> None:
        """A barrier: all that was sent before has been handled."""
        self._pings = getattr(self, "_pings", 0) + 1
        await self.say("session.ping", id=str(self._pings))
        await self.until("session.pong", id=str(self._pings))
