"""The client for Python programs: text goes in, audio comes out, while both are still being made.

A language model's tokens, spoken as they come (`tokens`: any asynchronous iterator of strings):

    from protocol.client import connect

    async with connect("ws://127.0.0.1:8080/v1/stream", sample_rate=24000) as client:
        async for chunk in client.say(tokens, voice="anna"):
            player.write(chunk.data)        # or chunk.array; chunk.start is its position in samples

With barge-in, each turn is a context of its own (examples/llm.py is a whole program):

    context = client.context()
    speaking = asyncio.create_task(play(context.say(tokens)))
    …
    stopped = await context.cancel(player.heard_ms)     # at any time, from any task; the iteration ends
    history.append(stopped.text_spoken)

Text may be pushed by hand as well, from another task than the one that takes the audio:

    await context.send("Half a sen")
    await context.flush()                               # speak even that
    await context.send("tence.")
    await context.done()

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
from protocol.client_values import AudioChunk, CancelResult, ContextResult, Heard, Ready, Segment

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
    "Segment",
    "SpeechContext",
    "SpeechError",
    "SyncClient",
    "SyncContext",
    "connect",
    "connect_sync",
]
