"""One worker of the engine: its process, and the channels to the stages in it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence

from inference.channel import Unframer, frame

_READ_BYTES = 1 << 18
_KILL_AFTER_S = 5.0  # between asking a worker to end (its channels close) and killing it


class StageProcess:
    """`stage_ids`: the stages that it runs, one or both."""

    def __init__(self, stage_ids: tuple[int, ...], receive: Callable[[object], None]) -> None:
        """`receive` takes what the stages say.  Nothing runs before `start`."""
        self.stage_ids = stage_ids
        self._receive = receive
        self._process: asyncio.subprocess.Process | None = None
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._readers: list[asyncio.Task[None]] = []

    @property
    def pid(self) -> int:
        """The process, which leads a group of its own."""
        return self._process.pid

    async def start(self, connector: Sequence[int], arguments: Sequence[str]) -> None:
        """`connector`: the connector's file descriptors; `arguments`: further ones of `inference.worker`.

        Whatever is raised here (cancellation too), `stop` takes away what was begun.
        """
        pairs = {stage_id: socket.socketpair() for stage_id in self.stage_ids}
        theirs = {stage_id: pair[1] for stage_id, pair in pairs.items()}
        try:
            for stage_id, (ours, _) in pairs.items():
                reader, self._writers[stage_id] = await asyncio.open_connection(sock=ours)
                self._readers.append(asyncio.create_task(self._read(reader), name=f"stage {stage_id} reader"))
            stages = [word for stage_id, sock in theirs.items() for word in ("--stage", f"{stage_id}:{sock.fileno()}")]
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "inference.worker", *stages, "--connector", ":".join(map(str, connector)),
                *arguments,
                pass_fds=(*(sock.fileno() for sock in theirs.values()), *connector),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the gateway, which ends the stages in its own order
            )  # fmt: skip
        finally:
            for sock in theirs.values():
                sock.close()

    def send(self, stage_id: int, message: object) -> None:
        """Hand a message to one of its stages; lost before the start and after the end, when it has no streams."""
        if stage_id in self._writers:
            self._writers[stage_id].write(frame(message))

    async def wait(self) -> int:
        """Until the process has ended and all that it said was received -> its exit status, negative for a signal."""
        status = await self._process.wait()
        await asyncio.wait(self._readers)
        return status

    async def stop(self, kill: bool) -> None:
        """Close the channels, which ends the worker; kill it, with what it has started, if it does not or at once."""
        for task in self._readers:
            task.cancel()
        for writer in self._writers.values():
            writer.close()
        if self._process is None:
            return
        if not kill:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _KILL_AFTER_S)
        self.kill()
        await self._process.wait()

    def kill(self) -> None:
        """End the process, and what it has started, at once: SIGKILL reaches stopped ones too."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        unframer = Unframer()
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(_READ_BYTES):
                for message in unframer.feed(data):
                    self._receive(message)
