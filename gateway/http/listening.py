"""What has to hold before the server listens."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from aiohttp import web

from gateway.http.origin import is_loopback
from gateway.keys import SERVER_VARIABLE

_TLS_GOODBYE_S = 2.0  # for the other side to confirm the end of TLS before its socket is closed


class ListenError(Exception):
    """The server may not, or cannot, listen as it was told to."""


def check_address(host: str, has_keys: bool, allow_anonymous: bool) -> None:
    """Raise `ListenError` for an address that others can reach, if none of them would need a key."""
    if not (has_keys or allow_anonymous or is_loopback(host)):
        raise ListenError(
            f"{host or 'every address'} can be reached from other machines, and there are no API keys:"
            f" give --api-keys-file or {SERVER_VARIABLE}, or let everyone in by --allow-anonymous"
        )


async def listen(
    server: web.Server, host: str, port: int, tls: ssl.SSLContext | None, handshake_s: float
) -> asyncio.Server:
    """Let the HTTP server take connections; a TLS handshake may take `handshake_s` seconds.  Raises OSError.

    The library's own sites cannot be told the latter: they leave it a minute.
    """
    times = {"ssl_handshake_timeout": handshake_s, "ssl_shutdown_timeout": _TLS_GOODBYE_S} if tls else {}
    return await asyncio.get_running_loop().create_server(server, host, port, ssl=tls, **times)


def tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """For a server with this certificate chain and its key, both PEM; None if neither is given.

    Raises `ListenError` for files that cannot be read, are of another kind, do not belong together, or need a password.
    """
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ListenError("--tls-cert and --tls-key belong together, and only one of them is given")
    for file in (certificate, key):
        _check_readable(file)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError as error:
        why = (error.reason or "not PEM").replace("_", " ").lower()
        raise ListenError(f"TLS certificate {certificate} with key {key}: {why}") from error
    return context


def _check_readable(file: Path) -> None:
    """The ssl module does not say which of its files it could not read."""
    try:
        file.open("rb").close()
    except OSError as error:
        raise ListenError(f"TLS file {file}: {error.strerror}") from error


def _no_password() -> str:
    """Asked for when the key is encrypted: instead of a question at the terminal, which a service has not."""
    raise ListenError("the TLS key is encrypted: take one without a password")
