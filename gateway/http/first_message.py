"""What a client says first, where that tells whether it may say anything more."""

from __future__ import annotations

import asyncio

from aiohttp import WSMsgType

from gateway.session.client_socket import ClientSocket


async def first_message(socket: ClientSocket, limit_s: float) -> bytes | None:
    """The first text, which `receive` returns once more; None if the client brings none within `limit_s`."""
    try:
        async with asyncio.timeout(limit_s):
            message = await socket.receive()
            while message.type in (WSMsgType.PING, WSMsgType.PONG):
                message = await socket.receive()
    except TimeoutError:
        return None
    socket.put_back(message)
    return message.data if message.type is WSMsgType.TEXT else None
