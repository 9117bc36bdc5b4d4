"""Listeners on a gateway whose engine has a known pace: what they measure is that."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

import pytest
from scripted_engine import FRAME_SAMPLES, ScriptedEngine

from gateway.bench.listener import NO_AUDIO, Utterance, listen
from gateway.bench.load import Load, Pace
from gateway.bench.player import Released
from gateway.settings import Settings
from protocol.client import connect
from protocol.limits import Limits

FRAME_S = FRAME_SAMPLES / 44100
SENTENCE = "One sentence that is spoken whole."
TWO = "One sentence that is spoken whole. And another one that is too."


def url_of(gateway) -> str:
    return f"ws://127.0.0.1:{gateway.port}/v1/stream"


async def test_the_real_time_factor_is_that_of_the_engine(run_gateway):
    """200 frames a second is 0.107 of real time, and the first packet has 4 frames: 20 ms."""
    engine = ScriptedEngine(speed=200, frames=lambda text: 100)
    async with run_gateway(engine) as gateway, connect(url_of(gateway), sample_rate=44100) as client:
        heard = await listen(client, SENTENCE, None)
    assert heard.code is None and heard.player.audio_s == pytest.approx(100 * FRAME_S)
    fastest = 1 / (200 * FRAME_S)
    assert fastest <= heard.player.real_time_factor < 2 * fastest
    assert 4 / 200 <= heard.player.first_packet_s < 0.3
    assert heard.player.dry_s() == 0 and heard.latency_s >= 100 / 200


async def test_a_stall_is_measured_as_the_underrun_it_is(run_gateway):
    """After four frames nothing comes for a while: the player is dry from the end of those frames on."""
    engine = ScriptedEngine(frames=lambda text: 50)
    engine.chunk_gate.clear()
    async with run_gateway(engine) as gateway, connect(url_of(gateway)) as client:
        listening = asyncio.create_task(listen(client, SENTENCE, None))
        await engine.until(lambda: engine.live)
        closed_at = time.monotonic()
        await asyncio.sleep(0.5)
        engine.chunk_gate.set()
        opened_at = time.monotonic()
        heard = await listening
        first = heard.player.chunks[0].arrival
        assert first - closed_at < 0.3
        expected = opened_at - first - 4 * FRAME_S
        assert expected <= heard.player.dry_s() < expected + 0.1
        assert heard.player.dry_s() == heard.player.dry_s(Released.ANNOUNCED) == pytest.approx(heard.player.silence_s())


async def test_text_is_typed_at_its_pace(run_gateway):
    """At 100 characters a second two go out at once, every 20 ms."""
    engine = ScriptedEngine(frames=lambda text: 4)
    async with run_gateway(engine) as gateway, connect(url_of(gateway)) as client:
        heard = await listen(client, TWO, 100)
    player = heard.player
    assert (len(TWO) - 2) / 100 <= player.done_at - player.started_at < 2 * len(TWO) / 100
    assert player.typed_at(0) == player.typed_at(1) < player.typed_at(2)
    assert "".join(text for text, _ in player.segments) == TWO and len(player.segments) >= 2
    assert player.chunks[0].arrival < player.done_at
    assert 0 <= player.first_packet_s < 0.3


async def test_what_fails_is_told_by_its_code(run_gateway):
    engine = ScriptedEngine(fail={SENTENCE: (1, "engine_failed")})
    async with run_gateway(engine) as gateway, connect(url_of(gateway), max_new_tokens=20) as client:
        assert (await listen(client, SENTENCE, None)).code == "engine_failed"
        assert (await listen(client, "A sentence too long for that.", None)).code == "max_length"
        assert (await listen(client, "...", None)).code == NO_AUDIO


async def speak(gateway, texts: list[str], pace: Pace) -> list[Utterance]:
    utterances: list[Utterance] = []
    async with asyncio.timeout(20), Load(lambda: connect(url_of(gateway)), pace) as load:
        await load.speak(texts, 0, utterances.append)
    return utterances


async def test_no_more_listeners_than_asked_for(run_gateway):
    engine = ScriptedEngine(speed=400, frames=lambda text: 40)
    most = 0

    def frames(text: str) -> int:
        nonlocal most
        most = max(most, len(engine.live))
        return 40

    engine._frames = frames
    async with run_gateway(engine) as gateway:
        utterances = await speak(gateway, [SENTENCE] * 9, Pace(concurrency=3))
    assert [utterance.code for utterance in utterances] == [None] * 9
    assert most == 3


async def test_a_realtime_listener_asks_again_when_the_end_was_heard(run_gateway):
    engine = ScriptedEngine(frames=lambda text: 6)
    async with run_gateway(engine) as gateway:
        first, second = await speak(gateway, [SENTENCE] * 2, Pace(1, characters_per_s=1000))
    assert second.player.started_at >= first.player.heard_until


async def test_requests_come_at_their_rate(run_gateway):
    engine = ScriptedEngine(frames=lambda text: 4)
    async with run_gateway(engine) as gateway:
        utterances = await speak(gateway, ["Hello."] * 20, Pace(8, request_rate=40))
    starts = sorted(utterance.player.started_at for utterance in utterances)
    gaps = [b - a for a, b in pairwise(starts)]
    assert 0.25 < starts[-1] - starts[0] < 1.5
    assert max(gaps) > 2 * min(gaps)


async def test_a_line_that_is_refused_fails_its_requests_and_no_others(run_gateway):
    settings = Settings(limits=Limits(connections=1))
    async with run_gateway(ScriptedEngine(speed=400), settings) as gateway:
        utterances = await speak(gateway, [SENTENCE] * 4, Pace(2))
    assert {utterance.code for utterance in utterances} == {None, "overloaded"}
