"""What has to hold before the server listens."""

from __future__ import annotations

from gateway.keys import SERVER_VARIABLE
from gateway.origin import is_loopback


class ListenError(Exception):
    """The server may not, or cannot, listen as it was told to."""


def check_address(host: str, has_keys: bool, allow_anonymous: bool) -> None:
    """Raise `ListenError` for an address that others can reach, if none of them would need a key."""
    if not (has_keys or allow_anonymous or is_loopback(host)):
        raise ListenError(
            f"{host or 'every address'} can be reached from other machines, and there are no API keys:"
            f" give --api-keys-file or {SERVER_VARIABLE}, or let everyone in by --allow-anonymous"
        )
