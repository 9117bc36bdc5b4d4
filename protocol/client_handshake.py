"""Opening the client's WebSocket, and what a refused handshake says."""

from __future__ import annotations

import asyncio
import re

import orjson
import websockets
from websockets.asyncio.client import ClientConnection, connect

from protocol.client_errors import UNREACHABLE, ConnectError
from protocol.codes import ErrorCode
from protocol.messages import SUBPROTOCOL

HANDSHAKE_S = 10.0
_KEY = re.compile(r"[\x21-\x7e]+")
_CLOSE_S = 2.0
_MOST_MESSAGE_BYTES = 16 * 2**20
# The answer to a ping comes behind the audio that the socket's buffers hold, which may be more than a minute of it.
_PING_INTERVAL_S, _PING_TIMEOUT_S = 10.0, 120.0


async def open_socket(url: str, api_key: str | None) -> ClientConnection:
    """A connected WebSocket.  Raises ConnectError, whose message has neither the key nor the query of the address."""
    if api_key is not None and not _KEY.fullmatch(api_key):
        raise ConnectError(ErrorCode.UNAUTHORIZED, "the API key has characters that no key has")
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    try:
        return await connect(
            url, additional_headers=headers, subprotocols=[SUBPROTOCOL], compression=None,
            max_size=_MOST_MESSAGE_BYTES, open_timeout=HANDSHAKE_S, close_timeout=_CLOSE_S,
            ping_interval=_PING_INTERVAL_S, ping_timeout=_PING_TIMEOUT_S,
        )  # fmt: skip
    except websockets.InvalidURI:
        raise ConnectError(UNREACHABLE, f"{without_query(url)!r} is no address of a WebSocket") from None
    except websockets.InvalidStatus as error:
        raise _refusal(error.response) from error
    except (OSError, TimeoutError, websockets.InvalidHandshake) as error:
        raise ConnectError(UNREACHABLE, f"no gateway at {without_query(url)}: {error}") from error


async def close_socket(socket: ClientConnection) -> None:
    """Close, dropping what still comes: unread audio would hold up the other side's answer."""
    closing = asyncio.create_task(socket.close(), name="speech client close")
    try:
        while True:
            await socket.recv()
    except websockets.ConnectionClosed:
        await closing


def without_query(url: str) -> str:
    """The address for a message: its query may hold a key."""
    return url.partition("?")[0]


def _refusal(response: websockets.Response) -> ConnectError:
    """What the gateway says in a refused handshake: its JSON body, else the status."""
    retry_after = response.headers.get("Retry-After", "")
    retry_after_ms = 1000 * int(retry_after) if retry_after.isdecimal() else None
    try:
        body = orjson.loads(response.body)
        return ConnectError(body["code"], f"the gateway refused: {body['message']}", retry_after_ms)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = f"no gateway answers there, but a server with status {response.status_code}"
        return ConnectError(UNREACHABLE, message, retry_after_ms)
