"""What is written in signs and short forms, in words: a voice reads them badly, and only one reading is possible."""

from __future__ import annotations

import regex

from gateway.text.capitals import calm
from gateway.text.numbers import LANGUAGES, spell_numbers
from gateway.text.shorthand import spell_shorthand
from gateway.text.units import spell_units
from gateway.text.web_addresses import spell_addresses

_FOREIGN = regex.compile(r"[\p{L}--\p{Latin}--[µμΩ]]", regex.VERSION1)


def read_out(plain: str, language: str) -> str:
    """`plain` in words of `language`; unchanged if that is none of ours, or if letters of another script tell that the
    text is in another language."""
    if language not in LANGUAGES or _FOREIGN.search(plain):
        return plain
    plain = spell_addresses(calm(plain), language)
    plain = spell_shorthand(plain, language)
    return spell_numbers(spell_units(plain, language), language)
