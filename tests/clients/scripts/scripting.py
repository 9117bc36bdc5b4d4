"""What the scripts in this folder share; standard library only, as they run in the environment of a client package."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path


def main(*cases: Callable[..., object]) -> None:
    """Run the case that the command line names, with keyword arguments from standard input as JSON.

    What it returns, as JSON, becomes `result.json` in the working folder, where it may leave other files, too.
    """
    case = next(case for case in cases if case.__name__ == sys.argv[1])
    result = case(**json.load(sys.stdin))
    if inspect.isawaitable(result):
        result = asyncio.run(_awaited(result))
    Path("result.json").write_text(json.dumps(result))


async def _awaited(result: object) -> object:
    return await result


def websocket_url(url: str) -> str:
    """`http://…` -> `ws://…`, `https://…` -> `wss://…`."""
    return "ws" + url.removeprefix("http")
