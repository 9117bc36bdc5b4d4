"""Three listeners and one who measures the server's lag, as a process of its own: others may misbehave meanwhile.

    python tests/bystanders.py PORT

Each line on its standard input is answered by what they noticed since the last one.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from websockets.asyncio.client import connect

LISTENERS = 3
PING_EVERY_S = 0.1
_LOOK_EVERY_S = 0.005
_TEXT = "one text without a stop that lasts for one and a half minutes or so " * 14  # fewer frames than a slot has
_CONFIG = {"split_granularity": "none", "max_new_tokens": 2048, "initial_codec_chunk_frames": 4}


class Bystanders:
    """What they have noticed: seconds without anything to play, and the longest answer to a ping.

    `noise_s`: how late this process itself was woken, by a machine that had other things to do.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._heard_until: dict[int, float | None] = dict.fromkeys(range(LISTENERS))
        self._clear()

    def report(self) -> dict[str, float]:
        """Since the last one.  A listener that waits right now counts too."""
        now = time.monotonic()
        for number, until in self._heard_until.items():
            self._note_dry(number, until, now)
        result = {
            "dry_s": self._dry,
            "lag_s": self._lag,
            "noise_s": self._noise,
            "chunks": self._chunks,
            "contexts": self._contexts,
        }
        self._clear()
        return result

    async def listen(self, number: int) -> None:
        """Speak a long text again and again."""
        async with connect(self._url, max_size=None, compression=None) as socket:
            await socket.recv()
            await socket.send(json.dumps({"type": "session.config", "codec_chunk_frames": 4, **_CONFIG}))
            while True:
                await socket.send(json.dumps({"type": "input.text", "text": _TEXT}))
                await socket.send('{"type":"input.done"}')
                self._contexts += 1
                await self._hear(number, socket)

    async def ping(self) -> None:
        """Ask for an answer again and again."""
        async with connect(self._url, max_size=None, compression=None) as socket:
            await socket.recv()
            while True:
                asked = time.monotonic()
                await socket.send('{"type":"session.ping"}')
                await socket.recv()
                waited = time.monotonic() - asked
                self._lag = max(self._lag, waited)
                await asyncio.sleep(max(0.0, PING_EVERY_S - waited))

    async def measure_noise(self) -> None:
        while True:
            due = time.monotonic() + _LOOK_EVERY_S
            await asyncio.sleep(_LOOK_EVERY_S)
            self._noise = max(self._noise, time.monotonic() - due)

    async def _hear(self, number: int, socket: object) -> None:
        async for message in socket:
            if isinstance(message, bytes):
                now, until = time.monotonic(), self._heard_until[number]
                self._note_dry(number, until, now)
                self._heard_until[number] = max(until or now, now) + len(message) / 2 / 44100
                self._chunks += 1
            elif (kind := json.loads(message)["type"]) in ("session.done", "error"):
                assert kind == "session.done", message
                self._heard_until[number] = None
                return

    def _note_dry(self, number: int, until: float | None, now: float) -> None:
        if until is not None and now > until:
            self._dry = max(self._dry, now - until)

    def _clear(self) -> None:
        self._dry = self._lag = self._noise = 0.0
        self._chunks = self._contexts = 0


@contextmanager
def bystanders(port: int) -> Iterator[object]:
    """A function that returns the next report, of listeners who are listening by then."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def report() -> dict[str, float]:
        process.stdin.write("\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    try:
        heard = 0
        while heard < LISTENERS * 4:
            time.sleep(0.1)
            heard += report()["chunks"]
        yield report
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


async def _main(port: int) -> None:
    people = Bystanders(f"ws://127.0.0.1:{port}/v1/stream")
    asyncio.get_running_loop().add_reader(sys.stdin, lambda: (sys.stdin.readline(), _answer(people)))
    async with asyncio.TaskGroup() as tasks:
        for number in range(LISTENERS):
            tasks.create_task(people.listen(number))
        tasks.create_task(people.ping())
        tasks.create_task(people.measure_noise())


def _answer(people: Bystanders) -> None:
    print(json.dumps(people.report()), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
