"""Several devices: as many pairs of stages, each listener on one of them, and what one loses the others go on with."""

from __future__ import annotations

import asyncio
import os
import signal

import numpy as np
import pytest
from aiohttp import ClientSession
from real_engine import EXTRA, heard, submit
from running_gateway import running

from gateway.engine.stream import EngineError
from gateway.settings import Settings


async def test_two_replicas_speak_alike_and_stand_in_for_each_other(engine):
    spoken = engine(stages__0__devices="0,1", **{f"{EXTRA}codec_decode": "stateful"})
    await spoken.start()
    try:
        assert [state.devices for state in spoken.states] == [{0: "cpu", 1: "cpu"}] * 2
        await same_speech_and_one_home(spoken)
        await one_falls_and_the_other_speaks(spoken)
    finally:
        await spoken.close()


async def same_speech_and_one_home(spoken) -> None:
    """Listeners take turns; the audio of a seed is the same on both; a listener's segments stay together."""
    first, second = spoken.next_listener(), spoken.next_listener()
    streams = [submit(spoken, 40, 7, listener=listener) for listener in (first, second)]
    assert [replica.streams for replica in spoken.replicas] == [1, 1]
    (_, one), (_, other) = await asyncio.gather(*map(heard, streams))
    np.testing.assert_array_equal(one, other)
    again = [submit(spoken, 8, listener=second) for _ in range(3)]
    assert [replica.streams for replica in spoken.replicas] == [0, 3]
    await asyncio.gather(*map(heard, again))
    spoken.release(second)
    new = submit(spoken, 8)
    assert [replica.streams for replica in spoken.replicas] == [0, 1]  # the first still has a listener
    await heard(new)
    spoken.release(first)
    spoken.release(new.request.listener)


async def one_falls_and_the_other_speaks(spoken) -> None:
    """`/readyz` tells; a listener whose replica is gone goes on at the other."""
    async with running(spoken, Settings()) as gateway, ClientSession() as http:
        listeners = [spoken.next_listener() for _ in range(2)]
        streams = [submit(spoken, 1500, listener=listener) for listener in listeners]
        assert [replica.streams for replica in spoken.replicas] == [1, 1]
        os.kill(spoken.replicas[0].pids[1], signal.SIGKILL)
        with pytest.raises(EngineError, match="a stage of the engine has ended"):
            await heard(streams[0])
        answer = await http.get(f"http://127.0.0.1:{gateway.port}/readyz")
        assert answer.status == 200
        told = (await answer.json())["replicas"]
        assert [replica["ready"] for replica in told] == [False, True] and told[0]["stages"] == []
        assert spoken.ready and (await heard(submit(spoken, 8, listener=listeners[0])))[0] == [4, 4]
        async with asyncio.timeout(60):
            await spoken.replicas[0].wait_ready()
        assert (await heard(submit(spoken, 8)))[0] == [4, 4] and spoken.restarts == 1
        streams[1].cancel()
