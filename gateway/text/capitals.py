"""Loud text: whole words in capitals, which a voice would spell or stumble over, in small letters."""

from __future__ import annotations

import unicodedata

import regex

_WORD = r"\p{Lu}[\p{Lu}\p{M}'’-]*"
_RUN = regex.compile(rf"(?<![\w'’-]){_WORD}(?:[^\w.!?\n]{{1,3}}{_WORD}){{2,}}(?![\w'’-])")  # three words or more
_LONG = 4  # letters: of acronyms few have so many and a vowel
_VOWELS = frozenset("aeiouyаеёиоуыэюяієїαεηιουω")


def calm(plain: str) -> str:
    """`plain` with runs of words in capitals in small letters, but for the first letter and for what is an acronym by
    its look.  A run has at least three words, two of them long: "THIS IS VERY LOUD", and not "USA AND UK"."""
    return _RUN.sub(lambda found: _calmed(found[0]), plain)


def _calmed(run: str) -> str:
    words = regex.findall(_WORD, run)
    if sum(len(word) >= _LONG and _has_vowel(word) for word in words) < 2:
        return run
    small = regex.sub(_WORD, lambda word: word[0].lower() if _has_vowel(word[0]) and word[0] != "I" else word[0], run)
    return small[0].upper() + small[1:]


def _has_vowel(word: str) -> bool:
    return any(letter in _VOWELS for letter in unicodedata.normalize("NFD", word.lower()))
