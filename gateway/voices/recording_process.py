"""Files of strangers are decoded in a process of their own, which can be stopped and has little memory and time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys

import numpy as np

from gateway.voices.recording_rules import BAD_RECORDING_STATUS, BadRecording

log = logging.getLogger(__name__)

_PATIENCE_S = 30.0  # a busy machine gives no whole processor
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # each thread has a stack, which is memory


async def decode_recording(data: bytes, rate: int) -> np.ndarray:
    """A checked recording: float32 [n] at `rate`, one channel, in −1…1.  Raises BadRecording."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway.voices.recording", str(rate),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env=os.environ | _ONE_THREAD, start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(_PATIENCE_S):
            output, _ = await process.communicate(data)
    except TimeoutError:
        raise BadRecording("the file takes too long to decode") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if process.returncode == BAD_RECORDING_STATUS:
        raise BadRecording(output.decode())
    if process.returncode:
        log.warning("a decoder of recordings ended with status %d", process.returncode)
        raise BadRecording("the file cannot be decoded")
    return np.frombuffer(output, "<f4")
