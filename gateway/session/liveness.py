"""Whether the client is still there: a silent one is asked by a ping, and its own pings are answered."""

from __future__ import annotations

from aiohttp import WSMsgType

from protocol.limits import Limits


class Liveness:
    """Times are those of the connection's clock.  What is to be sent waits for `take_controls`."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._heard_at = now
        self._pinged_at: float | None = None  # the ping that is not answered yet
        self._must_ping = False
        self._pong: bytes | None = None  # the answer that is owed to the client's latest ping (RFC 6455, section 5.5.3)

    def heard(self, now: float) -> None:
        """Something came, which also answers a ping."""
        self._heard_at, self._pinged_at = now, None

    def owe_pong(self, data: bytes) -> None:
        """The client has sent a ping; only its latest is answered."""
        self._pong = data

    def is_gone(self, now: float, playback_ends: float) -> bool:
        """A client that does not answer a ping is gone.

        One that reads no faster than it plays comes upon the ping behind all the audio that its buffers hold.
        """
        if self._pinged_at is None:
            return False
        return now - max(self._pinged_at, playback_ends) >= self._limits.ping_timeout_s

    def ping_if_silent(self, now: float) -> None:
        """Ask a client that was not heard for long."""
        if self._pinged_at is None and now - self._heard_at >= self._limits.ping_interval_s:
            self._pinged_at = now
            self._must_ping = True

    @property
    def has_controls(self) -> bool:
        """There is something for `take_controls`."""
        return self._must_ping or self._pong is not None

    def take_controls(self) -> list[tuple[bytes, WSMsgType]]:
        """Pong and ping that are to be sent now."""
        controls = []
        if self._pong is not None:
            controls.append((self._pong, WSMsgType.PONG))
        if self._must_ping:
            controls.append((b"", WSMsgType.PING))
        self._pong, self._must_ping = None, False
        return controls
