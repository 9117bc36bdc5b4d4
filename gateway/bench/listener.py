"""One listener: types a text into a context, hears it to its end, and takes notes."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from gateway.bench.player import Player
from protocol.client import Client, SpeechError

_MOST_PIECES_PER_S = 50.0  # faster than that, several characters go out at once, as from a language model

NO_AUDIO = "no_audio"


@dataclass(frozen=True, slots=True)
class Utterance:
    """What became of one request.

    `code`: why it failed, None if all was spoken: the code of the SDK's error, the reason of `session.done` if that is
    not `done`, or `no_audio`.  `player`: its notes, whatever came of it.  `ended_at`: of the receiver's clock.
    `server_rtf`: what the gateway says of its synthesis.
    """

    player: Player
    ended_at: float
    code: str | None = None
    message: str = ""
    server_rtf: float | None = None

    @property
    def latency_s(self) -> float:
        """From the first text to the end."""
        return self.ended_at - self.player.started_at


async def listen(client: Client, text: str, characters_per_s: float | None) -> Utterance:
    """Type `text` at that pace (None: all at once), and hear it to its end.  Never raises SpeechError."""
    player = Player(text, int(client.config["sample_rate"]))
    context = client.context()
    code, message = None, ""
    try:
        async for chunk in context.say(_typing(player, characters_per_s)):
            player.heard(time.monotonic(), chunk.start, chunk.samples)
    except SpeechError as error:
        code, message = error.code, error.message
    ended_at = time.monotonic()
    player.segments = list(context.segments)
    result = context.result
    if code is None and result is not None and result.reason != "done":
        code, message = result.reason, "the gateway ended the speech early"
    if code is None and not player.chunks:
        code, message = NO_AUDIO, "the text has nothing that can be spoken"
    return Utterance(player, ended_at, code, message, result.metrics["rtf"] if result else None)


async def _typing(player: Player, characters_per_s: float | None) -> AsyncIterator[str]:
    """The pieces of the player's text when they are due."""
    size = math.ceil(characters_per_s / _MOST_PIECES_PER_S) if characters_per_s else len(player.text)
    begin = time.monotonic()
    for start in range(0, len(player.text), size):
        if characters_per_s:
            await asyncio.sleep(max(0.0, begin + start / characters_per_s - time.monotonic()))
        player.typed(time.monotonic(), start)
        yield player.text[start : start + size]
    player.done(time.monotonic())
