"""Runs of a script against a gateway, in the environment of a client package.

To add a client, in `tests/clients`: pin its package in `requirements/CLIENT.txt`, write `scripts/SCRIPT.py` with one
function for each case (see `scripts/plain_websocket.py`; only the client package and the standard library may be
imported, and the file must not be named like a package), and call it from a test (see `test_plain_websocket.py`):

    told = await talk("CLIENT", "SCRIPT.py", "case", url=gateway.url, text="Hello.")

Keyword arguments go to the case as JSON.  `told` has what it returned, and the files that it wrote into its working
folder.  The gateway is one in the test's own loop, over a `tones.ToneEngine`, which can be asked what it was given,
or the one at the fixture `voice_url`, which speaks; `run_gateway(engine, tls=make_certificate(tmp_path))` makes one
behind TLS.
"""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from client_environments import environment

SCRIPTS = Path(__file__).parent / "clients" / "scripts"
PATIENCE_S = 90.0  # a client's imports alone may take ten seconds on a busy machine


@dataclass(frozen=True)
class Told:
    """`values`: what the case returned.  `folder`: the files that it wrote."""

    values: Any
    folder: Path

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def pcm(self, name: str) -> np.ndarray:
        """(samples,) int16, of a file of bare samples."""
        return np.frombuffer((self.folder / name).read_bytes(), "<i2")


async def run_client(
    folder: Path, client: str, script: str, case: str, env: Mapping[str, str] | None = None, **arguments: object
) -> Told:
    """Run one case in a new folder below `folder`; `env`: further variables.  Fails with what the script printed."""
    python = await asyncio.to_thread(environment, client)
    folder = folder / f"{case}-{len(list(folder.iterdir()))}"
    folder.mkdir()
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = await asyncio.create_subprocess_exec(
        str(python), str(SCRIPTS / script), case,
        cwd=folder, env={**inherited, **(env or {})}, stdin=PIPE, stdout=PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE_S):
            printed, _ = await process.communicate(json.dumps(arguments).encode())
    except TimeoutError:
        process.kill()
        printed = await process.stdout.read()
        raise AssertionError(f"{script} {case} did not end within {PATIENCE_S:g} s; {printed.decode()}") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, f"{script} {case} failed:\n{printed.decode()}"
    return Told(json.loads((folder / "result.json").read_text()), folder)
