"""The README's example works as it stands, but for the port."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import wave
from asyncio.subprocess import PIPE
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


async def test_first_words_over_the_socket(gateway, tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert ":8080/" in example
    code = example.replace(":8080/", f":{gateway.port}/")
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=tmp_path, stdout=PIPE, stderr=PIPE)
    async with asyncio.timeout(20):
        output, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")
    assert json.loads(output)["reason"] == "done"
    assert " ".join(request.text for request in gateway.engine.submitted) == "Text walks in, and audio walks out."
    with wave.open(str(tmp_path / "out.wav")) as file:
        assert file.getnframes() == json.loads(output)["usage"]["audio_frames"] * 2048
