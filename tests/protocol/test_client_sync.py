"""The Python client for programs without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

from talking import (
    TEXT,
    no_task_is_left,  # noqa: F401
    url_of,
)

from protocol.client import ContextFailed, connect_sync


def speak_in_script(url: str, found: dict) -> None:
    def pieces() -> Iterator[str]:
        yield from TEXT.split(" ")

    with connect_sync(url, sample_rate=8000) as client:
        found["model"] = client.ready.model
        found["pieces"] = sum(chunk.samples for chunk in client.say(word + " " for word in pieces()))
        context = client.context(voice="bo")
        context.send("half a wo")
        found["flush"] = context.flush()
        context.done()
        found["samples"] = sum(chunk.samples for chunk in context)
        found["result"], found["heard"] = context.result, context.heard(0)
        stopped = client.context()
        stopped.send("never mind")
        found["stopped"] = stopped.cancel()
        with client.context() as turn:
            chunks = turn.say(word + " " for word in pieces())
            first = next(chunks)
            found["segments"], found["barge_in"] = turn.segments, turn.cancel(10)
            found["after"] = list(chunks)
        found["first"], found["rate"] = first, client.config["sample_rate"]
        try:
            list(client.say("x", voice="nobody"))
        except ContextFailed as error:
            found["error"] = error.code
    found["closed"] = client.closed


async def test_a_script_needs_no_loop(gateway):
    found: dict = {}
    await asyncio.to_thread(speak_in_script, url_of(gateway), found)
    assert found["model"] == "scripted" and found["pieces"] > 0
    assert found["flush"] == found["samples"] == found["result"].samples
    assert found["heard"] == ("", "half a wo")
    assert found["stopped"].text_remaining == "never mind" and found["error"] == "unknown_voice"
    assert found["first"].start == 0 and found["rate"] == 8000 and found["after"] == []
    assert found["segments"][0].start == 0 and TEXT.startswith(found["segments"][0].text)
    assert (found["barge_in"].text_spoken + found["barge_in"].text_remaining).rstrip() in TEXT
    assert found["closed"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("speech")]
