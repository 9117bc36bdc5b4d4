"""The client for Python programs: text goes in, audio comes out, while both are still being made.

A language model's tokens, spoken as they come (`tokens`: any asynchronous iterator of strings):

    from protocol.client import connect

    async with connect("ws://127.0.0.1:8080/v1/stream", sample_rate=24000) as client:
        async for chunk in client.say(tokens, voice="anna"):
            player.write(chunk.data)        # or chunk.array; chunk.start is its position in samples

With barge-in, each turn is a context of its own:

    context = client.context()
    speaking = asyncio.create_task(play(context))       # async for chunk in context: …
    async for token in tokens:
        await context.send(token)
    await context.done()
    …
    stopped = await context.cancel(player.heard_ms)     # at any time, from any task
    history.append(stopped.text_spoken)

A script needs no loop:

    with connect_sync("ws://127.0.0.1:8080/v1/stream") as client:
        samples = b"".join(chunk.data for chunk in client.say("Hello there."))

When the connection is lost, contexts of which nothing was spoken are said again on a new one, after a back-off; others
end with ConnectionLost, and `context.heard(offset_ms)` still tells which text was heard and which was not.
"""

from __future__ import annotations

from protocol.client_connection import Client, connect
from protocol.client_errors import (
    ConnectError,
    ConnectionLost,
    ContextEnded,
    ContextFailed,
    ProtocolViolation,
    RefusedError,
    SpeechError,
)
from protocol.client_speech import SpeechContext
from protocol.client_sync import SyncClient, SyncContext, connect_sync
from protocol.client_values import AudioChunk, CancelResult, ContextResult, Heard, Ready

__all__ = [
    "AudioChunk",
    "CancelResult",
    "Client",
    "ConnectError",
    "ConnectionLost",
    "ContextEnded",
    "ContextFailed",
    "ContextResult",
    "Heard",
    "ProtocolViolation",
    "Ready",
    "RefusedError",
    "SpeechContext",
    "SpeechError",
    "SyncClient",
    "SyncContext",
    "connect",
    "connect_sync",
]
