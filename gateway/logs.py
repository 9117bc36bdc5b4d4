"""Log lines: one an event, `key=value` behind a few words; no text of users, no secrets."""

from __future__ import annotations

import logging


def configure(level: str) -> None:
    """Write lines of at least `level` (lower case) to standard error."""
    logging.basicConfig(level=level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("aiohttp.websocket").setLevel(logging.ERROR)  # it warns of every unknown subprotocol
