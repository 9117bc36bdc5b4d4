"""Abbreviations in words, where a voice would guess and only one reading is possible."""

from __future__ import annotations

import regex

# Behind these the sentence goes on.
_INSIDE = {
    "de": {
        "z. b.": "zum Beispiel", "d. h.": "das heißt", "bzw.": "beziehungsweise", "ggf.": "gegebenenfalls",
        "inkl.": "inklusive", "evtl.": "eventuell",
    },
    "en": {
        "e. g.": "for example", "i. e.": "that is", "vs.": "versus", "approx.": "approximately", "prof.": "Professor",
    },
    "es": {"p. ej.": "por ejemplo", "aprox.": "aproximadamente"},
    "fr": {"p. ex.": "par exemple", "c.-à-d.": "c'est-à-dire"},
    "it": {"p. es.": "per esempio", "ad es.": "ad esempio"},
    "nl": {"bijv.": "bijvoorbeeld", "d.w.z.": "dat wil zeggen", "o.a.": "onder andere", "incl.": "inclusief"},
    "pl": {"np.": "na przykład", "tzn.": "to znaczy", "m.in.": "między innymi"},
}  # fmt: skip
# The stop of these may be the sentence's, too.
_LAST = {
    "de": {"usw.": "und so weiter"},
    "en": {"etc.": "et cetera"},
    "es": {"etc.": "etcétera"},
    "fr": {"etc.": "et cetera"},
    "it": {"ecc.": "eccetera"},
    "nl": {"enz.": "enzovoort"},
    "pl": {"itd.": "i tak dalej", "itp.": "i tym podobne"},
}
_ENDS = regex.compile(r"""["'”’»)]*(?:\s+\p{Lu}|\s*$)""")


def _pattern(written: dict[str, str]) -> regex.Pattern:
    """Spaces are optional."""
    either = "|".join(regex.escape(key, literal_spaces=True).replace(" ", " ?") for key in written)
    return regex.compile(rf"(?<![\w.@/-])(?:{either})(?![\w@/-])", regex.IGNORECASE)


_WRITTEN = {language: _INSIDE[language] | _LAST[language] for language in _INSIDE}
_PATTERNS = {language: _pattern(written) for language, written in _WRITTEN.items()}
_WORDS = {
    language: {key.replace(" ", ""): words for key, words in written.items()} for language, written in _WRITTEN.items()
}


def spell_shorthand(plain: str, language: str) -> str:
    """`plain` with abbreviations in words of `language`; unchanged if none of that language are known."""
    pattern = _PATTERNS.get(language)
    return plain if pattern is None else pattern.sub(lambda found: _spelt(found, language), plain)


def _spelt(found: regex.Match, language: str) -> str:
    written = found[0].replace(" ", "").lower()
    words = _WORDS[language][written]
    if found[0][0].isupper():
        words = words[0].upper() + words[1:]
    return f"{words}." if written in _LAST[language] and _ENDS.match(found.string, found.end()) else words
