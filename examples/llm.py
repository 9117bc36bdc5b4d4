"""Talk with a language model: it is spoken while it is still writing, and Enter interrupts it.

    python examples/llm.py --llm http://127.0.0.1:11434/v1 --model llama3.2

`--llm` is any endpoint that speaks OpenAI's chat protocol (its key comes from $OPENAI_API_KEY), `--gateway` a gateway
(key: $AUDIO8_API_KEY).  Type a line to say something.  A line that comes while the model speaks stops it, and the model
is told only what you have heard of its answer, so that it knows what you know.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator

import aiohttp

from gateway.address import DEFAULT_URL, AddressError, endpoint_url
from gateway.say.sinks import SinkError, open_sink
from protocol.client import AudioChunk, Client, SpeechError, connect

Messages = list[dict[str, str]]
SYSTEM = "You are spoken to and heard, not read: answer in a few plain sentences, without lists or markup."


async def main() -> None:
    """Take turns until the input ends."""
    options = arguments()
    lines = Lines()
    messages: Messages = [{"role": "system", "content": SYSTEM}]
    headers = {"Authorization": f"Bearer {key}"} if (key := os.environ.get("OPENAI_API_KEY")) else {}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        connect(endpoint_url(options.gateway), os.environ.get("AUDIO8_API_KEY")) as client,
    ):
        while (line := await lines.get()) is not None:
            if line:
                messages.append({"role": "user", "content": line})
                words = tokens(http, options.llm, options.model, messages)
                messages.append({"role": "assistant", "content": await turn(client, words, lines.typed)})


async def turn(client: Client, words: AsyncIterator[str], barge_in: asyncio.Event) -> str:
    """Speak one answer, until somebody barges in -> what was heard of it."""
    context = client.context()
    player = Player(client.config["sample_rate"])
    playing = asyncio.create_task(player.play(context.say(words)))
    barge_in.clear()
    stopping = asyncio.create_task(barge_in.wait())
    await asyncio.wait({playing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if playing.done():
        try:
            await playing
        except (SpeechError, SinkError, aiohttp.ClientError) as error:
            print(f"\n{error}", file=sys.stderr)
        return context.heard().text_spoken
    stopped = await context.cancel(player.stop())  # no audio of it follows, and the model's stream is closed
    await asyncio.gather(playing, return_exceptions=True)
    return f"{stopped.text_spoken}—"


async def tokens(http: aiohttp.ClientSession, llm: str, model: str, messages: Messages) -> AsyncIterator[str]:
    """The pieces of the model's answer as they come, also on the screen (server-sent events)."""
    request = {"model": model, "messages": messages, "stream": True}
    async with http.post(f"{llm.rstrip('/')}/chat/completions", json=request, raise_for_status=True) as response:
        async for line in response.content:
            data = line.removeprefix(b"data:").strip()
            if not line.startswith(b"data:") or data == b"[DONE]":
                continue
            for choice in json.loads(data)["choices"]:
                if piece := choice["delta"].get("content"):
                    print(piece, end="", flush=True)
                    yield piece
    print()


class Player:
    """Plays chunks on what this machine has, and knows how much of them was heard."""

    def __init__(self, sample_rate: int) -> None:
        self._sink = open_sink(None, sample_rate)
        self._rate, self._samples, self._played_until = sample_rate, 0, 0.0
        self._stopped = False

    async def play(self, chunks: AsyncIterator[AudioChunk]) -> None:
        """Play all of them; returns when they were heard."""
        async for chunk in chunks:
            self._samples += chunk.samples
            self._played_until = max(self._played_until, time.monotonic()) + chunk.samples / self._rate
            await asyncio.to_thread(self._sink.write, chunk.data)
        if not self._stopped:
            await asyncio.to_thread(self._sink.close)

    def stop(self) -> float:
        """Silence, now -> milliseconds that were heard."""
        self._stopped = True
        waiting_s = max(0.0, self._played_until - time.monotonic())
        self._sink.abort()
        return max(0.0, 1000 * (self._samples / self._rate - waiting_s))


class Lines:
    """Lines of the standard input, then None; `typed` is set when one comes."""

    def __init__(self) -> None:
        self.typed = asyncio.Event()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, daemon=True).start()  # an event loop cannot wait for every kind of input

    async def get(self) -> str | None:
        """The next line."""
        return await self._lines.get()

    def _read(self) -> None:
        for line in sys.stdin:
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line.strip())
            self._loop.call_soon_threadsafe(self.typed.set)
        self._loop.call_soon_threadsafe(self._lines.put_nowait, None)


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llm", default="https://api.openai.com/v1", help="base URL (default: %(default)s)")
    parser.add_argument("--model", required=True, help="the language model's name")
    parser.add_argument("--gateway", default=DEFAULT_URL, help="(default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
    except (SpeechError, SinkError, AddressError) as error:
        sys.exit(str(error))
