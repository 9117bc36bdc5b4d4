"""`audio8-gateway bench` against a gateway: its table, files, exit status and errors."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path

import pytest
from scripted_engine import FRAME_SAMPLES, ScriptedEngine

from gateway.keys import ApiKeys
from gateway.settings import Settings

PATIENCE_S = 30.0
PNG = b"\x89PNG\r\n\x1a\n"


async def start_bench(gateway, *arguments: str, **options) -> Process:
    pipes = {"stdin": DEVNULL, "stdout": PIPE, "stderr": PIPE} | options
    command = (sys.executable, "-m", "gateway.cli", "bench", "--url", f"ws://127.0.0.1:{gateway.port}", *arguments)
    return await asyncio.create_subprocess_exec(*command, **pipes)


async def finish(process: Process) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    async with asyncio.timeout(PATIENCE_S):
        output, errors = await process.communicate()
    return process.returncode, output.decode(), errors.decode()


async def test_table_json_and_plot(run_gateway, tmp_path: Path) -> None:
    output, plot = tmp_path / "o.json", tmp_path / "p.png"
    arguments = (
        "--concurrency 3 --prompts 6 --warmups 2 --words 5 --voice bo --seed 5 --realtime --chars-per-second 500"
    )
    engine = ScriptedEngine(speed=400, frames=lambda text: 10)
    async with run_gateway(engine) as gateway:
        files = ("--output", str(output), "--plot", str(plot))
        status, shown, errors = await finish(await start_bench(gateway, *arguments.split(), *files))
    assert (status, errors) == (0, "")
    found = json.loads(output.read_text())
    assert (found["completed"], found["failed"], found["num_prompts"], found["max_concurrency"]) == (6, 0, 6, 3)
    assert found["model_id"] == "scripted" and found["realtime"] and found["sample_rate"] == 44100
    assert found["audio_continuity_ok_rate"] == 1.0 and found["mean_audio_ttfp_ms"] > 0
    spoken = [request for request in engine.submitted if request.voice == "bo"]
    assert spoken == engine.submitted and {request.sampling.seed for request in spoken} == {5}
    assert 0 < found["total_audio_duration_s"] < len(spoken) * 10 * FRAME_SAMPLES / 44100, "without the warm-ups"
    assert re.search(r"^Successful requests: +6$", shown, re.MULTILINE)
    assert f"Mean AUDIO_TTFP (ms):{found['mean_audio_ttfp_ms']:>23.3f}".replace(" ", "") in shown.replace(" ", "")
    assert plot.read_bytes().startswith(PNG)


async def test_requests_that_fail_are_counted_and_the_exit_status_tells(run_gateway, tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.write_text("A good one.\nA bad one.\n")
    async with run_gateway(ScriptedEngine(fail={"A bad one.": (1, "engine_failed")})) as gateway:
        process = await start_bench(gateway, "--prompts", "4", "--text-file", str(texts))
        status, shown, errors = await finish(process)
    assert status == 1
    assert re.search(r"^Failed requests: +2$", shown, re.MULTILINE)
    assert re.search(r"^  engine_failed: +2$", shown, re.MULTILINE)
    assert errors == "audio8-gateway bench: a request failed: scripted to fail (engine_failed)\n"


async def test_interrupt_tells_what_was_measured(run_gateway, tmp_path: Path) -> None:
    output = tmp_path / "o.json"
    engine = ScriptedEngine()
    async with run_gateway(engine) as gateway:
        process = await start_bench(gateway, "--concurrency", "1", "--words", "3", "--output", str(output))
        await engine.until(lambda: len(engine.submitted) >= 3)
        engine.chunk_gate.clear()
        process.send_signal(signal.SIGINT)
        status, shown, errors = await finish(process)
        assert (status, errors) == (130, "")
        await engine.until(lambda: not engine.live)
    found = json.loads(output.read_text())
    assert found["interrupted"] and 1 <= found["completed"] < 20
    assert re.search(rf"^Successful requests: +{found['completed']}$", shown, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--voice", "nobody"), "unknown_voice"),
        (("--rate", "12345"), "sample_rate"),
        (("--url", "ftp://127.0.0.1"), "ftp://127.0.0.1"),
        (("--url", "ws://127.0.0.1:9"), "audio8-gateway serve"),
        (("--output", "/no/such/folder/o.json"), "/no/such/folder"),
        (("--text-file", "/no/such/file"), "/no/such/file"),
        (("--api-key", "no key"), "characters"),
    ],
)
async def test_what_is_wrong_is_told_before_anything_is_measured(
    gateway, arguments: tuple[str, ...], told: str
) -> None:
    status, shown, errors = await finish(await start_bench(gateway, *arguments))
    assert (status, shown) == (1, "")
    assert errors.startswith("audio8-gateway bench: ") and errors.count("\n") == 1
    assert told in errors
    assert not gateway.engine.submitted


async def test_without_matplotlib_it_is_named(gateway, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'matplotlib' else real(name, *rest)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    process = await start_bench(gateway, "--plot", str(tmp_path / "p.png"), env=environment)
    status, _, errors = await finish(process)
    assert status == 1 and "pip install matplotlib" in errors


async def test_the_key_of_the_environment(run_gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDIO8_API_KEY", "the-key")
    async with run_gateway(ScriptedEngine(), Settings(keys=ApiKeys({"a": "the-key"}))) as gateway:
        status, _, errors = await finish(await start_bench(gateway, "--prompts", "2", "--words", "3"))
    assert (status, errors) == (0, "")
