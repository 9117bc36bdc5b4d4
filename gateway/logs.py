"""Log lines: one an event, `key=value` behind a few words; no text of users, no secrets."""

from __future__ import annotations

import logging

from aiohttp.http_exceptions import HttpProcessingError


def configure(level: str) -> None:
    """Write lines of at least `level` (lower case) to standard error."""
    logging.basicConfig(level=level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s")
    # It warns of every unknown subprotocol, by name: that may be a key.
    logging.getLogger("aiohttp.websocket").setLevel(logging.ERROR)
    logging.getLogger("aiohttp.server").addFilter(hide_request)


def hide_request(record: logging.LogRecord) -> bool:
    """Make one line of the traceback of a malformed request: it quotes the line at fault, where a key may stand."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        record.msg = f"malformed request: {record.msg} ({type(error).__name__})"
        record.exc_info = record.exc_text = None
    return True
