"""Which web pages may connect: any page can open a WebSocket to any host, the browser only says whose it is."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """Pages of the same origin and of loopback hosts may connect, by a host name that is loopback's on its connections.

    `origins`: further pages, `https://host` or `https://host:port`.  `hosts`: further names in the Host header, of
    any port; if there are any, connections that are not loopback's need one of them.
    """

    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    def refusal(self, origin: str | None, host: str, local_address: str) -> str | None:
        """Why a handshake is refused, None if it is not.

        `origin`: the header, None for programs that are no browsers; `host`: the Host header; `local_address`: where
        the connection came in.  A name that was made to point to this machine (DNS rebinding) is told by its Host.
        """
        if not self._takes_host(host_name(host), local_address):
            return f"host {host!r} is not allowed"
        if origin is None:
            return None
        parts = _parse(origin)
        if parts is None:
            return f"origin {origin!r} is not allowed"
        scheme, name, port = parts
        if parts in map(_parse, self.origins):
            return None
        if is_loopback(name) or _netloc(name, port, scheme) == _normal(host, scheme):
            return None
        return f"origin {origin!r} is not allowed"

    def _takes_host(self, name: str, local_address: str) -> bool:
        if name in self.hosts:
            return True
        return is_loopback(name) if is_loopback(local_address) else not self.hosts


def is_origin(text: str) -> bool:
    """Whether this is an origin that a policy can allow."""
    return _parse(text) is not None


def host_name(host: str) -> str:
    """The name in a Host header, in lower case and without the port; "" if it is none."""
    parts = _parse(f"http://{host}")
    return parts[1] if parts else ""


def is_loopback(name: str) -> bool:
    """Whether a host name or address always means this machine."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


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
