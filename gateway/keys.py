"""API keys: where the server reads them, where a request carries one, and whether it is one of them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

SERVER_VARIABLE = "AUDIO8_API_KEYS"
CLIENT_VARIABLE = "AUDIO8_API_KEY"

_KEY_SUBPROTOCOL = "audio8.key."
_SCHEMES = ("bearer", "token")
_KEY = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # what may follow `Bearer` (RFC 9110, section 11.2: token68)
_NAME = re.compile(r"[A-Za-z0-9._-]+")


class KeysError(Exception):
    """Keys that cannot be used; the message never contains one."""


class ApiKeys:
    """Who may connect.  Only digests are kept, so that no representation of this object tells a key."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        """`keys`: from name to key."""
        self._digests = {name: _digest(key) for name, key in keys.items()}

    def owner(self, offered: str | None) -> str | None:
        """The name of the key that was offered, None if it is none of these; takes as long for each of them."""
        if offered is None:
            return None
        digest = _digest(offered)
        matching = [name for name, known in self._digests.items() if hmac.compare_digest(digest, known)]
        return matching[0] if matching else None


def load_keys(file: Path | None, variable: str | None) -> ApiKeys | None:
    """The keys of a file and of the environment variable's value, None if neither is given; raises `KeysError`.

    One key a line, after an optional name and a space; empty lines and lines that begin with `#` are skipped.  In the
    variable a comma is as good as the end of a line.  Keys without a name are called `#1`, `#2`, ….
    """
    if file is None and variable is None:
        return None
    keys: dict[str, str] = {}
    for name, key in _entries(file, variable):
        name = name or f"#{len(keys) + 1}"
        if name in keys:
            raise KeysError(f"two API keys have the name {name!r}")
        keys[name] = key
    return ApiKeys(keys)


def is_key(text: str) -> bool:
    """Whether a key can be written like this: letters, digits and `._~+/-`, at the end any number of `=`."""
    return _KEY.fullmatch(text) is not None


def offered_key(headers: Mapping[str, str], query: Mapping[str, str]) -> str | None:
    """The key that a request carries, None if there is none: in a header, else the subprotocol, else `?token=`.

    Clients of other servers have forms of their own: `Authorization: Token` and the subprotocols `token, KEY` or
    `bearer, KEY` (Deepgram), `xi-api-key` (ElevenLabs).
    """
    scheme, _, key = headers.get("Authorization", "").partition(" ")
    if scheme.lower() in _SCHEMES:
        return key.strip()
    if "xi-api-key" in headers:
        return headers["xi-api-key"].strip()
    key = _key_in_subprotocols(headers.get("Sec-WebSocket-Protocol", ""))
    return query.get("token") if key is None else key


def _key_in_subprotocols(offered: str) -> str | None:
    names = [name.strip() for name in offered.split(",")]
    for name, following in zip(names, [*names[1:], None], strict=True):
        if name.startswith(_KEY_SUBPROTOCOL):
            return _decoded(name.removeprefix(_KEY_SUBPROTOCOL))
        if name.lower() in _SCHEMES:
            return following
    return None


def _entries(file: Path | None, variable: str | None) -> Iterator[tuple[str | None, str]]:
    if file is not None:
        yield from _parse(_read(file), str(file))
    if variable is not None:
        yield from _parse(variable.replace(",", "\n"), SERVER_VARIABLE)


def _parse(text: str, source: str) -> list[tuple[str | None, str]]:
    """(name, key) of each line that has one."""
    found: list[tuple[str | None, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        *names, key = line.split()
        if len(names) > 1 or not all(map(_NAME.fullmatch, names)) or not is_key(key):
            raise KeysError(
                f"{source}, entry {number}: neither a key nor a name, a space and a key;"
                " a key has letters, digits and ._~+/- and at its end any number of ="
            )
        found.append((names[0] if names else None, key))
    if not found:
        raise KeysError(f"{source} holds no API key")
    return found


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise KeysError(f"API keys file {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise KeysError(f"API keys file {file} is not UTF-8 text") from error


def _decoded(text: str) -> str:
    """Base64url, padded or not; what is none is no key either."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode()
    except ValueError:
        return ""


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
