"""The load: so many lines to a gateway, each with one text after the other."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gateway.bench.listener import Utterance, listen
from gateway.bench.player import Player
from protocol.client import Client, SpeechError, connect

Dial = Callable[[], connect]


@dataclass(frozen=True, slots=True)
class Pace:
    """How the load comes.

    `characters_per_s`: texts are typed at this pace, and who has heard the end asks again; None: whole texts at once,
    and again as soon as the last audio is there.  `request_rate`: requests begin at the times of a Poisson process of
    so many a second, where a line is free; None: as soon as one is.
    """

    concurrency: int
    characters_per_s: float | None = None
    request_rate: float | None = None


class Line:
    """A connection, dialled when it is needed, and again after the SDK has given it up."""

    def __init__(self, dial: Dial) -> None:
        self._dial = dial
        self._client: Client | None = None

    async def open(self) -> Client:
        """Its client.  Raises SpeechError if there is no connection."""
        if self._client is None or self._client.closed:
            await self.close()
            self._client = await self._dial()
        return self._client

    async def listen(self, text: str, characters_per_s: float | None) -> Utterance:
        """One request.  That there is no connection is its failure."""
        try:
            client = await self.open()
        except SpeechError as error:
            return Utterance(Player(text, sample_rate=1), time.monotonic(), error.code, error.message)
        return await listen(client, text, characters_per_s)

    async def close(self) -> None:
        """Hang up."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


class Load:
    """`async with Load(dial, pace) as load`: the lines are open, as far as the gateway takes them."""

    def __init__(self, dial: Dial, pace: Pace) -> None:
        self._pace = pace
        self._lines = [Line(dial) for _ in range(pace.concurrency)]

    async def __aenter__(self) -> Load:
        """Connect.  A line that is refused tries again with its first request, and tells why there."""
        await asyncio.gather(*(line.open() for line in self._lines), return_exceptions=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(line.close() for line in self._lines))

    async def speak(self, texts: Sequence[str], seed: int, on_end: Callable[[Utterance], None]) -> None:
        """Have all texts spoken; `on_end` is given each utterance as soon as it has ended."""
        free: asyncio.Queue[Line] = asyncio.Queue()
        for line in self._lines:
            free.put_nowait(line)

        async def request(line: Line, text: str) -> None:
            utterance = await line.listen(text, self._pace.characters_per_s)
            on_end(utterance)
            if self._pace.characters_per_s and utterance.player.chunks:
                await asyncio.sleep(utterance.player.heard_until - time.monotonic())
            free.put_nowait(line)

        begin = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for text, due in zip(texts, _arrivals(self._pace.request_rate, seed), strict=False):
                await asyncio.sleep(max(0.0, begin + due - time.monotonic()))
                tasks.create_task(request(await free.get(), text))


def _arrivals(rate: float | None, seed: int) -> Iterator[float]:
    """Seconds from the beginning at which requests come, without end."""
    rng, at = random.Random(seed), 0.0
    while True:
        yield at
        at += rng.expovariate(rate) if rate else 0.0
