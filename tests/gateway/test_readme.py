"""The README's examples work as they stand, but for the port."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import wave
from asyncio.subprocess import PIPE
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


async def run_example(number: int, gateway, folder: Path) -> str:
    """What the README's example prints."""
    example = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[number]
    assert ":8080/" in example
    code = example.replace(":8080/", f":{gateway.port}/")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(README.parent), *filter(None, sys.path)])}
    command = (sys.executable, "-c", code)
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, env=environment, stdout=PIPE, stderr=PIPE)
    async with asyncio.timeout(20):
        output, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")
    return output.decode()


async def test_first_words_over_the_socket(gateway, tmp_path: Path) -> None:
    output = await run_example(0, gateway, tmp_path)
    assert json.loads(output)["reason"] == "done"
    assert " ".join(request.text for request in gateway.engine.submitted) == "Text walks in, and audio walks out."
    with wave.open(str(tmp_path / "out.wav")) as file:
        assert file.getnframes() == json.loads(output)["usage"]["audio_frames"] * 2048


async def test_a_program_with_the_client(gateway, tmp_path: Path) -> None:
    output = await run_example(1, gateway, tmp_path)
    assert output.startswith("0 (")
    text = " ".join(request.text for request in gateway.engine.submitted)
    assert text == "A model's words are spoken as they come."
