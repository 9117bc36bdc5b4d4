"""Web addresses: what is one, and what of it is said."""

from __future__ import annotations

import re

from gateway.text.characters import IDEOGRAPHS

_OUTSIDE = rf"\s<>\"`|\\^{{}}，。、！？；：」』）】“”«»{IDEOGRAPHS}"
ADDRESS = rf"(?i:https?://|ftp://|www\.)[^{_OUTSIDE}]{{1,1000}}"
TRAILING = ".,;:!?'’)]*_~"  # at the end they belong to the sentence around it
_LONGEST_PATH = 40
_PARTS = re.compile(r"(?i)(?:https?://|ftp://)?(?:www\.)?(?P<host>[^/?#]*)(?P<path>[^?#]*)")


def said(address: str) -> str:
    """Host and path.  A scheme, a query and a fragment tell a listener nothing, and no long path is understood."""
    parts = _PARTS.match(address)
    path = parts["path"].rstrip("/")
    return parts["host"] + path if len(path) <= _LONGEST_PATH else parts["host"]
