"""Amounts in words, where a voice reads their figures badly and only one reading is possible.

Prices, percentages, decimal fractions and numbers with grouped thousands are spelt out, in the notation of the text's
language, and English ordinal numbers.  All else keeps its figures, since what they mean is not certain or a model reads
them well: dates, times, telephone numbers, versions, ranges, plain whole numbers.  Chinese, Japanese and Korean texts
keep theirs, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import regex
from num2words import num2words

_CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP", "zł": "PLN"}
_UNIT = r"[$€£]|zł"
_MOST_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Notation:
    """How a language writes numbers (`thousands`, `decimal`: characters) and says what is not in num2words."""

    thousands: str
    decimal: str
    minus: str
    point: str
    percent: str


_NARROW = "\u00a0\u202f"
_NOTATIONS = {
    "de": Notation(".", ",", "minus", "Komma", "Prozent"),
    "en": Notation(",", ".", "minus", "point", "percent"),
    "es": Notation(".", ",", "menos", "coma", "por ciento"),
    "fr": Notation(_NARROW, ",", "moins", "virgule", "pour cent"),
    "it": Notation(".", ",", "meno", "virgola", "per cento"),
    "nl": Notation(".", ",", "min", "komma", "procent"),
    "pl": Notation(_NARROW, ",", "minus", "przecinek", "procent"),
}

_BEFORE = r"(?<![^\s(\[\"'“‘„«¿¡—–])(?<![\d+×*/=]\s)"
# "1.5 million", "$5k": a word behind the figures belongs to the number.
_SCALE_WORD = (
    r"(?:[kKmMbBtT]|[bBtTM]n|mln|mld|mrd|Mi?[or]|Mrd|Mld|tys|mila?|tausend|thousand|mille|duizend)\b"
    r"|\p{L}{0,3}il{1,2}[ij]"
)
_AFTER = (
    r"(?![\w°ºª])(?![.,:]\w)(?!/\d)(?![–\-][\w$€£])(?!\s\d)(?!\s?[–×*/+=-]\s?\d)"  # part of something longer
    rf"(?!\s?[ap]\.?\s?m\b)(?!\s?(?:{_SCALE_WORD}))"  # a time, a scale
)
# Behind a name or such a word "3.11" is a version, a section or a time, at least where the point is a decimal one.
_NOT_NAMED = r"(?<!\b(?:\p{Lu}\p{L}*|at|version|release|section|chapter|part|figure|table)\s)"


def spell_numbers(plain: str, language: str) -> str:
    """`plain` with its amounts in words of `language`, one of LANGUAGES."""
    if not any(map(str.isdigit, plain)):
        return plain
    for pattern, say in _PATTERNS[language]:
        plain = pattern.sub(lambda found, say=say: say(found, language) or found[0], plain)
    return plain


def _digits(found: regex.Match) -> str | None:
    """The whole part without its grouping, None if it has too many digits to be said as a number."""
    digits = regex.sub(r"\D", "", found["whole"])
    return digits if len(digits) <= _MOST_DIGITS else None


def say_number(whole: str, part: str, language: str, minus: bool = False) -> str:
    """Digits before and behind the decimal mark in words; the latter one by one."""
    notation = _NOTATIONS[language]
    words = [notation.minus] if minus else []
    words.append(num2words(int(whole), lang=language))
    if part:
        words += [notation.point, *(num2words(int(digit), lang=language) for digit in part)]
    return " ".join(words).replace(", ", " ")


def is_fraction(figures: str, language: str) -> bool:
    """Whether three digits behind one mark are a fraction: "1.500" is one and a half in English, else 1500."""
    return regex.fullmatch(r"\d+\D\d+", figures) is not None and _NOTATIONS[language].decimal in figures


def _number(found: regex.Match, language: str) -> str | None:
    whole = _digits(found)
    return whole and say_number(whole, found["part"], language, minus=bool(found["sign"]))


def _percentage(found: regex.Match, language: str) -> str | None:
    number = _number(found, language)
    word = "procenta" if language == "pl" and found["part"] else _NOTATIONS[language].percent
    return number and f"{number} {word}"


def _price(found: regex.Match, language: str) -> str | None:
    whole = _digits(found)
    if whole is None:
        return None
    cents = found["part"] or "00"
    number = f"{whole}.{cents}"
    form = {"lang": language, "to": "currency", "currency": _CURRENCIES[found["unit"]]}
    try:
        large, _, small = num2words(number, separator="|", **form).partition("|")
        both = num2words(number, **form)
    except NotImplementedError:  # the library does not know this currency in this language: the figures stay
        return None
    words = large if cents == "00" else small.strip() if not int(whole) else both
    return f"{_NOTATIONS[language].minus} {words}" if found["sign"] else words


def _ordinal(found: regex.Match, language: str) -> str | None:
    """None if the ending is none of the number's: "21th", "3st"."""
    if num2words(int(found["digits"]), lang=language, to="ordinal_num") != found[0].lower():
        return None
    return num2words(int(found["digits"]), lang=language, to="ordinal")


def _patterns(notation: Notation) -> list[tuple[regex.Pattern, Callable[[regex.Match, str], str | None]]]:
    """Patterns with how their matches are said, in the order in which they are tried."""
    # A space between groups of three is as good as a narrow one where a fraction or a unit shows that it is an amount.
    group = f"{notation.thousands} " if notation.thousands == _NARROW else notation.thousands
    point = regex.escape(notation.decimal)
    whole = rf"(?P<whole>\d{{1,3}}(?:[{group}]\d{{3}})+|\d+)"
    grouped = rf"(?P<whole>\d{{1,3}}(?:[{notation.thousands}]\d{{3}})+)"
    # Two digits behind either mark are cents: prices keep their notation when a text is translated.
    price = rf"(?P<whole>\d{{1,3}}(?:[.,{group}]\d{{3}})+(?!\d)|\d+)(?:[.,](?P<part>\d\d))?"
    sign = r"(?P<sign>[-−]?)"
    not_named = _NOT_NAMED if notation.decimal == "." else ""
    no_unit = r"(?!\s?(?:[$€£%]|zł))"
    return [
        (regex.compile(rf"{_BEFORE}{sign}(?P<unit>{_UNIT})\s?{price}{_AFTER}(?!\s?%|[$€£])"), _price),
        (regex.compile(rf"{_BEFORE}{sign}{price}\s?(?P<unit>{_UNIT}){_AFTER}"), _price),
        (regex.compile(rf"{_BEFORE}{sign}{whole}(?:{point}(?P<part>\d{{1,12}}))?\s?(?P<unit>%){_AFTER}"), _percentage),
        (regex.compile(rf"{_BEFORE}{not_named}{sign}{whole}{point}(?P<part>\d{{1,12}}){_AFTER}{no_unit}"), _number),
        (regex.compile(rf"{_BEFORE}{sign}{grouped}(?P<part>){_AFTER}{no_unit}"), _number),
    ]


LANGUAGES = frozenset(_NOTATIONS)
_PATTERNS = {language: _patterns(notation) for language, notation in _NOTATIONS.items()}
_PATTERNS["en"].append((regex.compile(r"(?<![\w.,:/-])(?P<digits>\d{1,3})(?i:st|nd|rd|th)(?![\w/])"), _ordinal))
