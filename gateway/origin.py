"""Which web pages may connect: any page can open a WebSocket to any host, the browser only says whose it is."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """Same origin and loopback pages by default; `allowed`: further origins, written `https://host` or `https://host:port`."""

    allowed: tuple[str, ...] = ()

    def refusal(self, origin: str | None, host: str, local_address: str) -> str | None:
        """Why a handshake is refused, None if it is not.

        `origin`: the header, None for programs that are no browsers; `host`: the Host header; `local_address`: where
        the connection came in.  A name that was made to point to this machine (DNS rebinding) is told by its Host.
        """
        if origin is not None and origin in self.allowed:
            return None
        host_name = _host_name(host)
        if _is_loopback(local_address) and not _is_loopback(host_name):
            return f"host {host!r} is not allowed on a loopback connection"
        if origin is None:
            return None
        parts = _parse(origin)
        if parts is None:
            return f"origin {origin!r} is not allowed"
        scheme, name, port = parts
        if _is_loopback(name) or _netloc(name, port, scheme) == _normal(host, scheme):
            return None
        return f"origin {origin!r} is not allowed"


def _parse(origin: str) -> tuple[str, str, int] | None:
    """(scheme, host, port), None for anything that is not exactly an origin."""
    try:
        parts = urlsplit(origin)
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None
    if not parts.hostname or parts.username is not None or parts.path or parts.query or parts.fragment:
        return None
    return parts.scheme, parts.hostname, port


def _normal(host: str, scheme: str) -> str:
    parts = _parse(f"{scheme}://{host}")
    return _netloc(parts[1], parts[2], scheme) if parts else ""


def _netloc(name: str, port: int, scheme: str) -> str:
    return f"{scheme}://{name}:{port}"


def _host_name(host: str) -> str:
    parts = _parse(f"http://{host}")
    return parts[1] if parts else ""


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
