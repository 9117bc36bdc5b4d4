"""What `/metrics` tells after known traffic, and to whom."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from pathlib import Path

import pytest
from aiohttp import ClientSession
from clocks import Clock
from prometheus_client.parser import text_string_to_metric_families
from real_engine import submit
from scraped import read, scrape
from scripted_engine import FRAME_SAMPLES, ScriptedEngine, frames_for

from gateway.keys import ApiKeys
from gateway.metrics import CONTEXT_STATES, ENDINGS, REPLICA_STATES, STREAM_STATES
from gateway.settings import Settings
from inference.messages import ARReport, CodecReport
from protocol.codes import ErrorCode
from protocol.limits import Limits

FRAME_S = FRAME_SAMPLES / 44100
ROOT = Path(__file__).parents[3]
REPORT = ARReport(
    steps=((0.011, 3), (0.05, 4)), prefills=(0.07,), frames=7, underruns=1, underrun_s=0.25, least_slack=-0.2,
    resident=3, waiting=2, paused=1, listeners=5, capacity=7.5, slots_used=4, slots=8, slacks=(0.4, 3.0),
)  # fmt: skip


def not_zero(values: dict[str, float]) -> dict[str, float]:
    return {label: value for label, value in values.items() if value}


async def test_known_traffic_is_counted_exactly(run_gateway):
    engine = ScriptedEngine(fail={"This breaks.": (1, "engine_failed")})
    async with run_gateway(engine, Settings(limits=Limits(waiting_contexts=1))) as gateway:
        async with await gateway.client() as client:
            for name in ("a", "b", "c"):
                await client.speak("Spoken whole.", context_id=name)
                await client.whole(name)
            await client.speak("This breaks.", context_id="broken")
            await client.whole("broken")
            engine.chunk_gate.clear()
            await client.speak("This is cancelled.", context_id="d")
            await client.until_audio()
            await client.say("input.cancel", context_id="d")
            await client.whole("d")
            engine.chunk_gate.set()
            await client.say("input.bad")
            engine.gate.clear()
            await client.speak("This waits.", context_id="e")
            await engine.until(lambda: len(engine.submitted) == 6)
            other = await gateway.client()
            await other.speak("One too many.", context_id="f")
            await other.whole("f")
            await other.socket.close()
            waiting = await scrape(gateway.port)
            engine.gate.set()
            await client.whole("e")
            audio = [chunk for heard in client.contexts.values() for chunk in heard.chunks]
            silent = await gateway.client()
            await silent.say("input.text", text="Never heard")
            await silent.pong()
            before = await scrape(gateway.port)
            await silent.socket.close()
        after = await scrape(gateway.port)
    assert waiting["audio8_contexts"]["queued"] == 1
    assert before["audio8_connections"] == {"": 2} and before["audio8_contexts"]["waiting_text"] == 1
    assert after["audio8_connections"] == {"": 0} and not not_zero(after["audio8_contexts"])
    assert after["audio8_connections_opened_total"] == {"": 3}
    assert after["audio8_contexts_opened_total"] == {"": 8}
    ended = {"done": 4, "failed": 2, "cancelled": 1, "disconnected": 1}
    assert not_zero(after["audio8_contexts_ended_total"]) == ended
    assert not_zero(after["audio8_errors_total"]) == {"engine_failed": 1, "overloaded": 1, "unknown_type": 1}
    assert after["audio8_queue_wait_seconds_count"] == {
        "": 6
    }  # all but the one without a turn and the one without text
    assert after["audio8_first_packet_seconds_count"] == {"": 6}
    assert after["audio8_realtime_factor_count"] == {"": 4}
    assert after["audio8_audio_sent_seconds_total"][""] == pytest.approx(sum(map(len, audio)) / 2 / 44100)
    assert after["audio8_sent_bytes_total"][""] > sum(map(len, audio))
    assert after["audio8_unsent_audio_seconds"] == {"": 0} and after["audio8_engine_ready"] == {"": 1}


async def test_states_of_contexts_and_audio_that_waits(run_gateway):
    engine, second = ScriptedEngine(), "The second has to wait for it."
    engine.hold_audio()  # of the first context: its codes are made, its audio is not
    async with run_gateway(engine) as gateway, await gateway.client() as client:
        await client.speak("The first is being made.", context_id="a")
        await engine.until(lambda: len(engine.submitted) == 1)
        engine.hold_audio().set()
        await client.speak(second, context_id="b")
        await engine.until(lambda: len(engine.submitted) == 2 and len(engine.live) == 1)
        await client.say("input.text", text="The third is not even", context_id="c")
        await client.pong()
        series = await scrape(gateway.port)
        await client.say("input.cancel")
        await client.pong()
        later = await scrape(gateway.port)
    assert series["audio8_contexts"] == {"queued": 0, "generating": 1, "waiting_text": 1, "waiting_turn": 1}
    assert series["audio8_unsent_audio_seconds"][""] == pytest.approx(frames_for(second) * FRAME_S)
    assert not_zero(later["audio8_contexts_ended_total"]) == {"cancelled": 3}
    assert later["audio8_unsent_audio_seconds"] == {"": 0}


async def test_a_listener_who_runs_dry_is_seen(run_gateway):
    engine, clock = ScriptedEngine(), Clock()
    engine.chunk_gate.clear()
    text = "A long one, in two chunks."
    assert frames_for(text) > 29
    async with run_gateway(engine, clock=clock) as gateway, await gateway.client() as client:
        await client.speak(text, context_id="a")
        await client.until_audio()
        clock.now += 4 * FRAME_S + 0.5
        engine.chunk_gate.set()
        await client.whole("a")
        once = await scrape(gateway.port)
        clock.now += 100  # all is heard: a new context comes late for nobody
        await client.speak("Short.", context_id="b")
        await client.whole("b")
        later = await scrape(gateway.port)
    assert once["audio8_listener_underruns_total"] == {"": 1}
    assert once["audio8_listener_underrun_seconds_total"][""] == pytest.approx(0.5)
    assert later["audio8_listener_underruns_total"] == {"": 1}


async def test_what_stages_report(gateway):
    codec = CodecReport(decodes=(0.02, 0.03), frames=20, streams=2, backlog_frames=11)
    for report in (REPORT, codec, codec):
        gateway.engine.on_report(report)
    gateway.engine.latest_reports, gateway.engine.restarts = [REPORT, codec], 2
    series = await scrape(gateway.port)
    assert series["audio8_ar_step_seconds_sum"][""] == pytest.approx(0.061)
    assert series["audio8_ar_step_rows_count"] == {"": 2} and series["audio8_ar_step_rows_sum"] == {"": 7}
    assert series["audio8_ar_prefill_seconds_count"] == {"": 1} and series["audio8_ar_frames_total"] == {"": 7}
    assert series["audio8_stream_underruns_total"] == {"": 1}
    assert series["audio8_stream_underrun_seconds_total"] == {"": 0.25}
    assert series["audio8_stream_slack_seconds_bucket"]["0.5"] == 1
    assert series["audio8_stream_slack_seconds_count"] == {"": 2}
    assert series["audio8_stream_slack_least_seconds"] == {"": -0.2}
    assert series["audio8_streams"] == {"waiting": 2, "resident": 3, "paused": 1}
    assert (series["audio8_listeners"][""], series["audio8_listeners_capacity"][""]) == (5, 7.5)
    assert (series["audio8_kv_slots"][""], series["audio8_kv_slots_used"][""]) == (8, 4)
    assert series["audio8_codec_decode_seconds_count"] == {"": 4} and series["audio8_codec_frames_total"] == {"": 40}
    assert series["audio8_codec_backlog_frames"] == {"": 11} and series["audio8_engine_restarts_total"] == {"": 2}


async def test_what_is_told_of_stages_that_are_down(run_gateway, engine):
    spoken = engine(stage_placement="threads")
    await spoken.start()
    async with run_gateway(spoken) as gateway, asyncio.timeout(60):
        stream = submit(spoken, 1500)
        await anext(aiter(stream))
        while not (speaking := await scrape(gateway.port))["audio8_streams"]["resident"]:
            await asyncio.sleep(0.05)
        os.kill(spoken.replicas[0].pids[0], signal.SIGKILL)
        while not (dead := await scrape(gateway.port))["audio8_engine_restarts_total"][""]:
            await asyncio.sleep(0.05)
        await spoken.replicas[0].wait_ready()
        again = await scrape(gateway.port)
    assert speaking["audio8_kv_slots"][""] > speaking["audio8_kv_slots_used"][""] == 1
    assert speaking["audio8_engine_ready"] == {"": 1} and speaking["audio8_replicas"] == {"ready": 1, "down": 0}
    assert dead["audio8_engine_ready"] == {"": 0} and dead["audio8_replicas"] == {"ready": 0, "down": 1}
    assert dead["audio8_kv_slots"] == {"": 0} and not not_zero(dead["audio8_streams"])
    assert again["audio8_replicas"] == {"ready": 1, "down": 0} and again["audio8_engine_restarts_total"] == {"": 1}
    assert again["audio8_ar_prefill_seconds_count"][""] >= 1  # what was counted is kept


async def test_no_label_has_a_value_that_a_client_chose(gateway):
    async with await gateway.client(additional_headers={"User-Agent": "chosen"}) as client:
        await client.speak("Hello.", context_id="chosen", voice="bo", language="de")
        await client.whole("chosen")
        await client.say("chosen")
        await client.pong()
    async with ClientSession() as http:
        await http.get(f"http://127.0.0.1:{gateway.port}/chosen")
        text = await (await http.get(f"http://127.0.0.1:{gateway.port}/metrics")).text()
    labels = {(name, value) for f in text_string_to_metric_families(text) for s in f.samples for name, value in
              s.labels.items() if name not in ("le", "version", "python")}  # fmt: skip
    closed = {"how": set(ENDINGS), "code": set(ErrorCode), "state": {*CONTEXT_STATES, *STREAM_STATES, *REPLICA_STATES}}
    assert labels == {(name, value) for name, values in closed.items() for value in values}
    assert read(text)["audio8_errors_total"]["not_found"] == 1


async def test_refusals_before_the_upgrade_are_counted(gateway):
    async with ClientSession() as http:
        url = f"http://127.0.0.1:{gateway.port}"
        await http.get(f"{url}/v1/stream")
        await http.get(f"{url}/v1/stream", headers={"Origin": "https://evil.example"})
    errors = (await scrape(gateway.port))["audio8_errors_total"]
    assert not_zero(errors) == {"upgrade_required": 1, "forbidden_origin": 1}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer monitor-key"}, 200),
        ({"Authorization": "Bearer monitor-key", "Origin": "https://evil.example"}, 403),
        ({"Authorization": "Bearer monitor-key", "Host": "evil.example"}, 403),
    ],
)
async def test_who_may_not_speak_may_not_see_metrics(run_gateway, headers, status):
    settings = Settings(keys=ApiKeys({"monitor": "monitor-key"}))
    async with run_gateway(ScriptedEngine(), settings) as gateway, ClientSession() as http:
        answer = await http.get(f"http://127.0.0.1:{gateway.port}/metrics", headers=headers)
        text = await answer.text()
    assert answer.status == status
    assert ("audio8_" in text) == (status == 200) and "monitor-key" not in text


async def test_the_page_of_metrics_names_all_series(gateway):
    gateway.engine.latest_reports = [REPORT]
    async with ClientSession() as http:
        text = await (await http.get(f"http://127.0.0.1:{gateway.port}/metrics")).text()
    names = set(re.findall(r"^# TYPE (audio8_\w+) ", text, re.MULTILINE))
    assert names == set(re.findall(r"`(audio8_\w+)", (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")))
