"""The `say` command against a gateway: what it sends, what it plays or writes, and how it ends."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import sys
import wave
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path

import numpy as np
import pytest
from decoding import decode
from scripted_engine import ScriptedEngine, frames_for

from gateway.keys import ApiKeys
from gateway.options import SayOptions
from gateway.say.command import say
from gateway.say.words import split_words
from gateway.settings import Settings

PATIENCE_S = 20.0
TEXT = "Once upon a time, there was a gateway. It spoke."


async def start_say(gateway, *arguments: str, **options) -> Process:
    """`audio8-gateway say` for that gateway."""
    pipes = {"stdin": DEVNULL, "stdout": PIPE, "stderr": PIPE} | options
    command = (sys.executable, "-m", "gateway.cli", "say", "--url", f"ws://127.0.0.1:{gateway.port}", *arguments)
    return await asyncio.create_subprocess_exec(*command, **pipes)


async def finish(process: Process, text: bytes | None = None) -> tuple[int, str]:
    """Exit status and standard error."""
    async with asyncio.timeout(PATIENCE_S):
        _, errors = await process.communicate(text)
    return process.returncode, errors.decode()


def spoken(gateway) -> list[str]:
    """What the engine was given."""
    return [request.text for request in gateway.engine.submitted]


def native_samples(texts: list[str]) -> int:
    """How many samples the scripted engine makes of the texts."""
    return 2048 * sum(map(frames_for, texts))


def read_wav(path: Path) -> tuple[int, np.ndarray]:
    with wave.open(os.fspath(path)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), "<i2")


async def test_text_becomes_a_wav_file(gateway, tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    assert await finish(await start_say(gateway, TEXT, "-o", str(path), "--voice", "bo")) == (0, "")
    assert " ".join(spoken(gateway)) == TEXT
    assert len(spoken(gateway)) > 1
    assert {request.voice for request in gateway.engine.submitted} == {"bo"}
    rate, samples = read_wav(path)
    assert rate == 44100
    assert len(samples) == native_samples(spoken(gateway))
    assert list(samples[:3]) == [-10000, -9999, -9998]


async def test_other_sample_rate(gateway, tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    assert await finish(await start_say(gateway, "One sentence only.", "-o", str(path), "--rate", "16000")) == (0, "")
    rate, samples = read_wav(path)
    assert rate == 16000
    assert len(samples) == int(native_samples(spoken(gateway)) * 16000 / 44100 + 0.5)


@pytest.mark.parametrize(("name", "given", "rate"), [("a.opus", (), 48000), ("b.MP3", ("--rate", "24000"), 24000)])
async def test_the_ending_of_the_name_tells_the_format(gateway, tmp_path: Path, name, given, rate) -> None:
    path = tmp_path / name
    assert await finish(await start_say(gateway, TEXT, "-o", str(path), *given)) == (0, "")
    samples, decoded_rate = decode(path.read_bytes())
    assert decoded_rate == rate
    assert 0 <= len(samples) / rate - native_samples(spoken(gateway)) / 44100 < 0.15


@pytest.mark.parametrize("name", ["out.flac", "out"])
async def test_other_endings_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    output = tmp_path / name
    assert await asyncio.to_thread(say, SayOptions("ws://127.0.0.1:1", TEXT, output)) == 1
    assert f"cannot write {output}: its name must end in one of .wav, .opus, .mp3" in capsys.readouterr().err
    assert not output.exists()


async def test_what_a_format_cannot_do_is_told(gateway, tmp_path: Path) -> None:
    process = await start_say(gateway, TEXT, "-o", str(tmp_path / "a.opus"), "--rate", "24000")
    status, errors = await finish(process)
    assert status == 1 and "sample_rate must be 48000" in errors


async def test_standard_input_is_spoken_while_it_comes_in(gateway, tmp_path: Path) -> None:
    process = await start_say(gateway, "-o", str(tmp_path / "out.wav"), stdin=PIPE)
    process.stdin.write(b"Once upon a time, the")
    await process.stdin.drain()
    await gateway.engine.until(lambda: spoken(gateway) == ["Once upon a time,"])
    assert await finish(process, "re was a café.".encode()) == (0, "")
    assert spoken(gateway) == ["Once upon a time,", "there was a café."]


async def test_long_text_is_paced_to_what_the_gateway_takes(gateway, tmp_path: Path) -> None:
    text = "This sentence is one of very many that are said. " * 400
    process = await start_say(gateway, "-o", str(tmp_path / "out.wav"), stdin=PIPE)
    assert await finish(process, text.encode()) == (0, "")
    assert " ".join(spoken(gateway)) == text.strip()


async def test_nothing_to_speak_is_an_empty_file(gateway, tmp_path: Path) -> None:
    path = tmp_path / "out.wav"
    assert await finish(await start_say(gateway, "  ...", "-o", str(path))) == (0, "")
    assert len(read_wav(path)[1]) == 0


def with_player(folder: Path, script: str) -> dict[str, str]:
    """An environment whose only player is `aplay`, a shell script."""
    program = folder / "aplay"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    (folder / "sounddevice.py").write_text("raise ImportError('not for this test')\n")
    python_path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return os.environ | {"PATH": f"{folder}:/usr/bin:/bin", "PYTHONPATH": python_path}


async def test_it_plays_through_a_player_program(gateway, tmp_path: Path) -> None:
    played, arguments = tmp_path / "played", tmp_path / "arguments"
    environment = with_player(tmp_path, f'echo "$@" > {arguments}; cat > {played}')
    assert await finish(await start_say(gateway, TEXT, env=environment)) == (0, "")
    assert "-r 44100" in arguments.read_text()
    assert played.stat().st_size == 2 * native_samples(spoken(gateway))


async def test_a_player_that_fails_is_told(gateway, tmp_path: Path) -> None:
    environment = with_player(tmp_path, "exit 3")
    status, errors = await finish(await start_say(gateway, TEXT, env=environment))
    assert (status, errors) == (1, "audio8-gateway say: aplay has stopped with status 3\n")


async def test_no_player_at_all(gateway, tmp_path: Path) -> None:
    environment = with_player(tmp_path, "") | {"PATH": str(tmp_path / "empty")}
    status, errors = await finish(await start_say(gateway, TEXT, env=environment))
    assert status == 1
    assert "-o out.wav" in errors and "Traceback" not in errors


async def test_interrupt_cancels_and_silences(run_gateway, tmp_path: Path) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    environment = with_player(tmp_path, f"head -c 1 > {started}; exec cat > /dev/null")
    async with run_gateway(ScriptedEngine(speed=50)) as gateway:
        process = await start_say(gateway, "A sentence that goes on, and on, and on for ever.", env=environment)
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.to_thread(started.read_bytes)  # the first sample has reached the player
        process.send_signal(signal.SIGINT)
        assert await finish(process) == (130, "")
        assert gateway.engine.cancelled
        await gateway.engine.until(lambda: not gateway.engine.live)


async def test_progress_on_a_terminal(gateway, tmp_path: Path) -> None:
    master, terminal = pty.openpty()
    process = await start_say(gateway, TEXT, "-o", str(tmp_path / "out.wav"), stderr=terminal)
    os.close(terminal)
    assert (await finish_without_errors(process)) == 0
    shown = os.read(master, 65536).decode()
    os.close(master)
    seconds = native_samples(spoken(gateway)) / 44100
    assert "first audio after" in shown
    assert f"{seconds:.1f} s of speech" in shown


async def finish_without_errors(process: Process) -> int:
    """Exit status of a process whose standard error is elsewhere."""
    async with asyncio.timeout(PATIENCE_S):
        return await process.wait()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--voice", "nobody"), "unknown_voice"),
        (("--rate", "12345"), "sample_rate"),
        (("--url", "ws://127.0.0.1:{port}/nowhere"), "nowhere"),
        (("--url", "ftp://127.0.0.1"), "ftp://127.0.0.1"),
        (("--url", "ws://127.0.0.1:9"), "audio8-gateway serve"),
        (("-o", "/no/such/folder/out.wav"), "/no/such/folder/out.wav"),
    ],
)
async def test_what_is_wrong_is_told(gateway, tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    given = [argument.format(port=gateway.port) for argument in arguments]
    output = () if "-o" in given else ("-o", str(tmp_path / "out.wav"))
    status, errors = await finish(await start_say(gateway, TEXT, *output, *given))
    assert status == 1
    assert errors.startswith("audio8-gateway say: ") and errors.count("\n") == 1
    assert told in errors


async def test_a_failing_engine_is_told(run_gateway, tmp_path: Path) -> None:
    engine = ScriptedEngine(fail={"One sentence only.": (1, "engine_failed")})
    async with run_gateway(engine) as gateway:
        process = await start_say(gateway, "One sentence only.", "-o", str(tmp_path / "out.wav"))
        status, errors = await finish(process)
    assert status == 1
    assert "engine_failed" in errors


def test_words_joined_are_the_text() -> None:
    text = "\n Two  words,\tand " + "x" * 1000 + " \n"
    pieces = list(split_words(text))
    assert "".join(pieces) == text
    assert pieces[0].split() == ["Two"]
    assert max(map(len, pieces)) <= 260
    assert list(split_words("")) == []


async def test_a_gateway_that_wants_a_key(run_gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_gateway(ScriptedEngine(), Settings(keys=ApiKeys({"a": "the-key"}))) as gateway:
        output = str(tmp_path / "out.wav")
        status, errors = await finish(await start_say(gateway, TEXT, "-o", output))
        assert status == 1 and "API key" in errors and "AUDIO8_API_KEY" in errors
        assert await finish(await start_say(gateway, TEXT, "-o", output, "--api-key", "the-key")) == (0, "")
        monkeypatch.setenv("AUDIO8_API_KEY", "the-key")
        assert await finish(await start_say(gateway, TEXT, "-o", output)) == (0, "")
        monkeypatch.setenv("AUDIO8_API_KEY", "no\nkey")
        status, errors = await finish(await start_say(gateway, TEXT, "-o", output))
        assert status == 1 and "characters" in errors and "no\nkey" not in errors
