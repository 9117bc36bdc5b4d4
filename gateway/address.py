"""The address of a gateway, as a person gives it."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

DEFAULT_URL = "ws://127.0.0.1:8080"
_ENDPOINT = "/v1/stream"


class AddressError(ValueError):
    """What was given is no address of a gateway."""


def endpoint_url(url: str) -> str:
    """`url` of a gateway as a WebSocket address: http is taken too, and the path may be left out."""
    parts = urlsplit(url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    if scheme not in ("ws", "wss") or not parts.hostname:
        raise AddressError(f"{url!r} is no address of a gateway: it looks like {DEFAULT_URL}")
    return urlunsplit((scheme, parts.netloc, parts.path.rstrip("/") or _ENDPOINT, parts.query, ""))
