"""Web and mail addresses: what is one, and what of it is said."""

from __future__ import annotations

import re

import regex

from gateway.text.characters import IDEOGRAPHS

_OUTSIDE = rf"\s<>\"`|\\^{{}}，。、！？；：」』）】“”«»{IDEOGRAPHS}"
ADDRESS = rf"(?i:https?://|ftp://|www\.)[^{_OUTSIDE}]{{1,1000}}"
TRAILING = ".,;:!?'’)]*_~"  # at the end they belong to the sentence around it
_LONGEST_PATH = 40
_PARTS = re.compile(r"(?i)(?:https?://|ftp://)?(?:www\.)?(?P<host>[^/?#]*)(?P<path>[^?#]*)")

# Names that no word of a sentence is: behind a stop without a space "it", "in", "me" or "so" would be one.
_TOP_LEVEL = (
    "ai|app|biz|blog|cloud|com|dev|edu|eu|gov|info|io|mil|net|online|org|shop|site|tech|uk|wiki|"
    "au|br|ca|cn|cz|de|dk|es|fi|fr|hk|ie|il|jp|kr|mx|nl|nz|pl|pt|ru|se|sg|tr|tw|ua|za"
)
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,40}[a-z0-9])?"
_WRITTEN = regex.compile(
    rf"(?<![\w.@:/-])(?:[\w.+-]{{1,64}}@(?:{_LABEL}\.){{1,4}}[a-z]{{2,12}}"
    rf"|(?:{_LABEL}\.){{1,4}}(?:{_TOP_LEVEL})(?:/[a-z0-9._~-]{{1,40}}){{0,4}}(?<![._~-]))(?![\w@-])(?!\.\w)",
    regex.IGNORECASE,
)
_SIGNS = {
    "de": (" Punkt ", " at ", " Slash "),
    "en": (" dot ", " at ", " slash "),
    "es": (" punto ", " arroba ", " barra "),
    "fr": (" point ", " arobase ", " slash "),
    "it": (" punto ", " chiocciola ", " barra "),
    "nl": (" punt ", " apenstaartje ", " slash "),
    "pl": (" kropka ", " małpa ", " ukośnik "),
}


def said(address: str) -> str:
    """Host and path.  A scheme, a query and a fragment tell a listener nothing, and no long path is understood."""
    parts = _PARTS.match(address)
    path = parts["path"].rstrip("/")
    return parts["host"] + path if len(path) <= _LONGEST_PATH else parts["host"]


def spell_addresses(plain: str, language: str) -> str:
    """`plain` with the signs in its addresses in words of `language`: "a dot b at c dot org"; unchanged if the language
    is not known."""
    signs = _SIGNS.get(language)
    if signs is None:
        return plain
    table = str.maketrans(dict(zip(".@/", signs, strict=True)))
    return _WRITTEN.sub(lambda found: found[0].translate(table), plain)
