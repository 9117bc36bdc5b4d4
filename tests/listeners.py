"""Realtime listeners for tests and benchmarks: they type at a steady pace, and note when each sample arrives.

Underrun as the wire protocol has it: a player starts at the first chunk and plays in real time; it is dry while it has
nothing to play and a segment whose text was released is unfinished; more than 5 ms is an underrun.  Two readings of
"released" are reported.  *announced*: the segment's `audio.segment` has been received, so only a stall inside a segment
counts.  *typed*: the character after the segment's last one has been sent, so the time to a segment's first packet
counts too if the listener has heard all before, even where it was waiting for text.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from websockets.asyncio.client import connect

HELDOUT = Path(__file__).parents[1] / "inference" / "training" / "data" / "heldout.txt"
UNDERRUN_S = 0.005
_FIRST_MARK = re.compile(r"[,;:.!?](?=\s|$)")


def texts(count: int, words: int, seed: int = 0) -> list[str]:
    """Texts of about `words` words, made of held-out sentences."""
    rng, sentences, made = random.Random(seed), HELDOUT.read_text().split("\n"), []
    sentences = [sentence.strip() for sentence in sentences if sentence.strip()]
    for _ in range(count):
        chosen: list[str] = []
        while sum(len(sentence.split()) for sentence in chosen) < words:
            chosen.append(rng.choice(sentences))
        made.append(" ".join(chosen))
    return made


@dataclass
class Utterance:
    """What one listener noted; times are seconds of the client's clock."""

    text: str
    typed: list[float] = field(default_factory=list)  # when each character was sent
    done_at: float = 0.0
    chunks: list[tuple[float, int, int]] = field(default_factory=list)  # (arrival, samples, index of its segment)
    segments: list[dict] = field(default_factory=list)
    end: dict = field(default_factory=dict)
    rate: int = 44100

    @property
    def first_packet_s(self) -> float:
        """From sending the character after the first clause mark, or the end of the text."""
        mark = _FIRST_MARK.search(self.text)
        after = mark.end() if mark else len(self.text)
        return self.chunks[0][0] - self._typed_at(after)

    @property
    def audio_s(self) -> float:
        return sum(samples for _, samples, _ in self.chunks) / self.rate

    def dry_s(self, released: str) -> float:
        """Seconds without anything to play, by either reading of "released"."""
        dry, heard_at, spoken = 0.0, self.chunks[0][0], -1
        ends = self._segment_ends()
        for arrival, samples, segment in self.chunks:
            since = heard_at
            if segment != spoken:
                since = arrival if released == "announced" else max(heard_at, self._typed_at(ends[segment]))
            spoken = segment
            if arrival - since > UNDERRUN_S:
                dry += arrival - since
            heard_at = max(heard_at, arrival) + samples / self.rate
        return dry

    def silence_s(self) -> float:
        """All silence between the first chunk and the last, for whatever cause."""
        silence, heard_at = 0.0, self.chunks[0][0]
        for arrival, samples, _ in self.chunks:
            silence += max(0.0, arrival - heard_at)
            heard_at = max(heard_at, arrival) + samples / self.rate
        return silence

    def _segment_ends(self) -> list[int]:
        ends, position = [], 0
        for segment in self.segments:
            position += len(segment["text"])
            ends.append(position)
        return ends

    def _typed_at(self, position: int) -> float:
        return self.typed[position] if position < len(self.typed) else self.done_at


async def listen(url: str, text: str, characters_per_s: float | None, **config: object) -> Utterance:
    """Type one text, one character a message (all at once without a pace), and hear it to its end."""
    utterance = Utterance(text)
    async with connect(url, max_size=None, compression=None) as socket:
        utterance.rate = json.loads(await socket.recv())["config"]["sample_rate"]
        if config:
            await socket.send(json.dumps({"type": "session.config", **config}))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_type(socket, utterance, characters_per_s))
            tasks.create_task(_hear(socket, utterance))
    return utterance


async def _type(socket, utterance: Utterance, characters_per_s: float | None) -> None:
    begin = time.monotonic()
    for index, character in enumerate(utterance.text):
        if characters_per_s:
            await asyncio.sleep(max(0.0, begin + index / characters_per_s - time.monotonic()))
        utterance.typed.append(time.monotonic())
        await socket.send(json.dumps({"type": "input.text", "text": character}))
    utterance.done_at = time.monotonic()
    await socket.send('{"type":"input.done"}')


async def _hear(socket, utterance: Utterance) -> None:
    async for message in socket:
        now = time.monotonic()
        if isinstance(message, bytes):
            utterance.chunks.append((now, len(message) // 2, len(utterance.segments) - 1))
            continue
        values = json.loads(message)
        if values["type"] == "audio.segment":
            utterance.segments.append(values)
        elif values["type"] in ("session.done", "error"):
            utterance.end = values
            return
