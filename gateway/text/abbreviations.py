"""Words with a stop that a sentence does not end at, beside those that `sentencex` knows."""

from __future__ import annotations

import re

# Such as stand before a name or a number.  Those that may as well end a sentence (usw., etc., ecc.) are left out.
# One with a capital is meant with it: "M. Dupont", but "5 m.".
_ABBREVIATIONS = {
    "de": "bzw ca d.h dr fr hr inkl max min nr o.ä s std tel u.a vgl z.b",
    "en": "approx ca ch eq fig figs nos pp sec tel vol vols vs",
    "es": "aprox cap d dña dr dra fig lic núm p.ej pág prof sr sra sres srta tel",
    "fr": "M chap dr env fig me mgr mlle mlles mm mme mmes no p.ex prof st ste tél vol",
    "it": (
        "arch art avv cap dott dott.ssa dr dr.ssa egr es fig gent geom ing mons n nr on p.es pag prof rag sig sig.ra "
        "sigg tel vol"
    ),
    "nl": "bijv blz ca dhr dr drs evt fig incl ing jl mej mevr mr nl nr o.a pag prof tel vgl z.g",
    "pl": "al dr godz hab im inż ks lek m.in mec mgr nr np ok os pl płk por prof red rys str św tel tj tzw ul woj zob",
}
_WORDS = {language: frozenset(words.split()) for language, words in _ABBREVIATIONS.items()}
_ORDINAL_LANGUAGES = frozenset("cs da de et fi hr hu lv nb nn no sk sl".split())  # "3. Oktober"

_LAST_WORD = re.compile(r"([^\W\d][\w.]{0,7})\.$")
_ORDINAL = re.compile(r"(?<![\w.,:])\d{1,2}\.$")


def goes_on(before: str, language: str) -> bool:
    """Whether the sentence goes on behind the stop that `before` ends with."""
    if language in _ORDINAL_LANGUAGES and _ORDINAL.search(before):
        return True
    word = _LAST_WORD.search(before)
    return word is not None and not {word[1], word[1].lower()}.isdisjoint(_WORDS.get(language, ()))
