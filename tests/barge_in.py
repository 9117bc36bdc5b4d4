"""Barge-in at random moments: what a round does, and whether all that a connection heard keeps the promises."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import numpy as np
from stream_client import StreamClient

from protocol.framing import HEADER_BYTES, AudioHeader

SENTENCES = (
    "Yes.",
    "One thing, then another.",
    "The first is here. The second is there, and it is longer.",
    "Nothing to stop at in all of these words",
    "It goes on, and on, and on, and on. Then it stops. 👍 ",
)
LONG = "This sentence is long enough to fill whatever buffers lie between us, for it goes on and on. "
AFTERWARDS = "All is well."


class Journal(StreamClient):
    """A client that keeps all it receives, in order."""

    def __init__(self, socket: object) -> None:
        super().__init__(socket)
        self.log: list[dict | bytes] = []

    async def receive(self) -> dict | bytes:
        self.log.append(await super().receive())
        return self.log[-1]


@dataclass
class Said:
    """One context: its name and number on the wire, the text that the server took, and how it was ended."""

    name: str
    number: int
    text: str = ""
    plan: list[str] = field(default_factory=list)


class Interrupter:
    """Speaks and interrupts on one connection.

    `hold(kind)` brings the engine into a state (one of `holds`) before the round and returns what releases it;
    `moment()` waits for a random while.
    """

    def __init__(
        self,
        client: Journal,
        rng: random.Random,
        holds: tuple[str, ...],
        hold: Callable[[str], Callable[[], object]],
        moment: Callable[[], Awaitable[None]],
    ) -> None:
        self.client, self.said = client, {}
        self._rng, self._holds, self._hold, self._moment = rng, holds, hold, moment
        self._openings = 0

    async def round(self) -> None:
        """Open a context (now and then behind another one), interrupt it, and make sure that the next one speaks."""
        rng, client = self._rng, self.client
        kind = rng.choice(self._holds)
        release = self._hold(kind)
        front = await self._open("The one in front waits for", kind, True) if kind == "behind another" else None
        context = await self._speak_part(kind)
        if kind == "between chunks":
            await client.until_audio()
        if kind == "ended":
            await client.say("input.done", **_id(context))
            await client.whole(context.name)
        await self._moment()
        await self._cancel(context, front)
        if rng.random() < 0.7:
            await client.pong()  # else the cancel races with what the engine makes now
        release()
        await client.pong()
        afterwards = await self._open(AFTERWARDS, "afterwards", rng.random() < 0.5)
        await client.say("input.done", **_id(afterwards))
        assert (await client.whole(afterwards.name)).end["type"] == "session.done", context.plan

    async def _open(self, text: str, plan: str, is_named: bool) -> Said:
        number, self._openings = self._openings, self._openings + 1
        said = Said(f"turn-{number}" if is_named else f"_{number}", number, text, [plan])
        self.said[said.name] = said
        await self.client.say("input.text", text=text, **_id(said))
        return said

    async def _speak_part(self, kind: str) -> Said:
        """Some of a text, in pieces; the rest may come when it is too late."""
        rng, client = self._rng, self.client
        whole = LONG * 4 if kind == "not reading" else "".join(rng.choices(SENTENCES, k=rng.randint(1, 3)))
        size = rng.choice([1, 7, len(whole)]) if kind != "not reading" else len(whole)
        pieces = [whole[i : i + size] for i in range(0, len(whole), size)]
        now = len(pieces) if rng.random() < 0.5 else rng.randint(1, len(pieces))
        context = await self._open(pieces[0], kind, rng.random() < 0.7)
        for piece in pieces[1:now]:
            await client.say("input.text", text=piece, **_id(context))
            context.text += piece
        if kind == "between chunks" or rng.random() < 0.3:
            await client.say("input.flush", **_id(context))
        elif kind != "ended" and rng.random() < 0.5:
            await client.say("input.done", **_id(context))
        return context

    async def _cancel(self, context: Said, front: Said | None) -> None:
        """By id or all, once or more often, with or without an offset, and then go on as if nothing had been."""
        rng, client = self._rng, self.client
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            offset = {"playback_offset_ms": rng.choice([0, 100.5, 2000, 1e6])} if rng.random() < 0.5 else {}
            by_id = context.name.startswith("turn") and rng.random() < 0.7
            fields = {**_id(context), **offset} if by_id else {}
            context.plan.append(f"cancel {fields}")
            await client.say("input.cancel", **fields)
        if context.name.startswith("turn"):
            for kind, more in rng.choice([(), (("input.text", {"text": "late"}), ("input.done", {}))]):
                await client.say(kind, **_id(context), **more)
        if front is not None:
            await client.say("input.cancel")


def _id(said: Said) -> dict[str, str]:
    return {"context_id": said.name} if said.name.startswith("turn") else {}


def check(log: list[dict | bytes], said: dict[str, Said], expected: Callable[[int, int], np.ndarray] | None) -> int:
    """All promises, over all that a connection has received; returns how many contexts were cancelled.

    `expected(position in the segment, samples)` is what is to be heard, int16; None: not known.
    """
    numbers = {context.number: context.name for context in said.values()}
    heard: dict[str, list] = {name: [] for name in said}
    for message in log:
        if isinstance(message, bytes):
            heard[numbers[AudioHeader.unpack(message).context_number]].append(message)
        elif message["type"] not in ("session.pong", "session.progress", "session.configured"):
            heard[message.get("context_id") or message["about_context_id"]].append(message)
    return sum(_check_context(said[name], messages, expected) for name, messages in heard.items())


def _check_context(said: Said, messages: list, expected: Callable[[int, int], np.ndarray] | None) -> bool:
    why = (said, [m if isinstance(m, dict) else AudioHeader.unpack(m) for m in messages])
    refusals = [m for m in messages if isinstance(m, dict) and m["type"] == "error"]
    assert all(m["code"] == "context_ended" and "context_id" not in m for m in refusals) and len(refusals) <= 1, why
    messages = [m for m in messages if m not in refusals]
    position, sequence, start, text = 0, 0, 0, ""
    for message in messages[:-1]:
        if isinstance(message, bytes):
            header = AudioHeader.unpack(message)
            assert header == AudioHeader(said.number, sequence, (len(message) - HEADER_BYTES) // 2, position), why
            if expected is not None:
                samples = np.frombuffer(message, "<i2", offset=HEADER_BYTES)
                assert np.array_equal(samples, expected(position - start, header.samples)), why
            position, sequence = position + header.samples, sequence + 1
            continue
        assert message["type"] in ("audio.start", "audio.segment", "input.flushed", "audio.done"), why
        if message["type"] == "audio.segment":
            assert message["start_sample"] == position, why
            start, text = position, text + message["text"]
    end = messages[-1]
    assert isinstance(end, dict) and end["type"] in ("session.done", "input.cancelled"), why
    if end["type"] == "session.done":
        assert not sequence or text == said.text, why
        return False
    assert end["samples_sent"] == position and end["text_spoken"] + end["text_remaining"] == said.text, why
    assert "audio.done" not in [m["type"] for m in messages if isinstance(m, dict)], why
    return True
