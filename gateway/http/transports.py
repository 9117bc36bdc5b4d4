"""How much may be on its way to a client."""

from __future__ import annotations

import asyncio
import socket


def bounded(transport: asyncio.Transport | None, send_buffer_bytes: int) -> asyncio.Transport:
    """Little is on its way at any time, so that a cancel is heard soon and a slow reader is noticed.

    Raises ConnectionResetError if there is no connection any more.
    """
    if transport is None:
        raise ConnectionResetError
    transport.set_write_buffer_limits(high=1)  # with 0 a TLS transport pauses for ever, though nothing waits
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    return transport
