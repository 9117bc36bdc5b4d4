"""The socket of one client and how it ends.

It is the library's WebSocket, but for one thing: what is too big to be read is for its owner to answer.
"""

from __future__ import annotations

from contextlib import suppress

from aiohttp import WebSocketError, WSCloseCode, WSMessage, WSMsgType
from aiohttp.web import WebSocketResponse


class ConnectionOver(Exception):
    """The connection has ended; `abort`: the socket takes no more, so nothing more can be sent."""

    def __init__(self, why: str, abort: bool = False) -> None:
        super().__init__(why)
        self.abort = abort

    def bare(self) -> ConnectionOver:
        """Without a traceback: its frames, with the audio in them, would stay until the next collection."""
        self.__traceback__ = self.__context__ = None
        return self


class ClientSocket(WebSocketResponse):
    """The library closes with 1009 while it receives such a message, before the owner could say why."""

    _again: WSMessage | None = None

    def put_back(self, message: WSMessage) -> None:
        """It was looked at, and is what `receive` returns next."""
        self._again = message

    async def receive(self, timeout: float | None = None) -> WSMessage:
        """As the library's."""
        message, self._again = self._again, None
        return await super().receive(timeout) if message is None else message

    async def dismiss(self, farewell: bytes, code: int, reason: str) -> None:
        """Say one text message, then close."""
        with suppress(ConnectionError):  # the client has left
            await self.send_frame(farewell, WSMsgType.TEXT)
            await self.close(code=code, message=reason.encode())

    async def close(self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True) -> bool:
        """As the library's.  Its own close of that kind is the one without a reason, and is left out."""
        if code == WSCloseCode.MESSAGE_TOO_BIG and not message:
            return False
        return await super().close(code=code, message=message, drain=drain)


def is_too_big(message: WSMessage) -> bool:
    """What `receive` returned stands for a message that was too big to be read; no other will follow it."""
    error = message.data if message.type is WSMsgType.ERROR else None
    return isinstance(error, WebSocketError) and error.code == WSCloseCode.MESSAGE_TOO_BIG
