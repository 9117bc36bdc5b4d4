"""Amounts with a unit in words: "10 kg" is "ten kilograms".  CLDR knows the units' plurals in each language."""

from __future__ import annotations

from decimal import Decimal

import regex
from babel.units import format_unit

from gateway.text.numbers import is_fraction, say_number

# Signs that mean one thing only; "m", "g", "l", "V" or "min" may be something else.  Values: CLDR's names.
_UNITS = {
    "kg": "mass-kilogram", "mg": "mass-milligram",
    "km": "length-kilometer", "cm": "length-centimeter", "mm": "length-millimeter",
    "m²": "area-square-meter", "km²": "area-square-kilometer", "ml": "volume-milliliter",
    "km/h": "speed-kilometer-per-hour", "mph": "speed-mile-per-hour",
    "°C": "temperature-celsius", "°F": "temperature-fahrenheit", "℃": "temperature-celsius",
    "kB": "digital-kilobyte", "MB": "digital-megabyte", "GB": "digital-gigabyte", "TB": "digital-terabyte",
    "Hz": "frequency-hertz", "kHz": "frequency-kilohertz", "MHz": "frequency-megahertz", "GHz": "frequency-gigahertz",
    "kW": "power-kilowatt", "kWh": "energy-kilowatt-hour",
}  # fmt: skip
_SIGNS = "|".join(map(regex.escape, sorted(_UNITS, key=len, reverse=True)))
_PATTERN = regex.compile(
    rf"(?<![\w.,:/])(?:(?<=^|\s)(?P<minus>[-−]))?"
    rf"(?P<figures>\d{{1,3}}(?:[.,\u00a0\u202f]\d{{3}})+(?!\d)|\d{{1,12}})(?P<part>[.,]\d{{1,12}})?"
    rf"[ \u00a0\u202f]?(?P<sign>{_SIGNS})(?![\w/²³·*^])"
)
_RANGE = regex.compile(r"\d\s?[-–]\s?$")


def spell_units(plain: str, language: str) -> str:
    """`plain` with its amounts in words of `language`, one of `numbers.LANGUAGES`; of a range the figures stay."""
    return _PATTERN.sub(lambda found: _spelt(found, language), plain)


def _spelt(found: regex.Match, language: str) -> str:
    figures, part = found["figures"], (found["part"] or "")[1:]
    if not part and is_fraction(figures, language):
        figures, part = regex.split(r"\D", figures)
    digits = regex.sub(r"\D", "", figures)
    value = Decimal(f"{digits}.{part}" if part else digits)
    _, unit = format_unit(value, _UNITS[found["sign"]], "long", format="0", locale=language).split(maxsplit=1)
    if _RANGE.search(found.string[: found.start()][-4:]):
        number = found["figures"] + (found["part"] or "")
    else:
        number = say_number(digits, part, language, minus=bool(found["minus"]))
    return f"{number} {' '.join(unit.split())}"
