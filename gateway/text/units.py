"""Units behind figures in words: "10 kg" is "10 kilograms".  CLDR knows them in the plural forms of each language."""

from __future__ import annotations

from decimal import Decimal

import regex
from babel.units import format_unit

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
    rf"(?<![\w.,:/])(?P<figures>\d{{1,3}}(?:[.,\u00a0\u202f]\d{{3}})+(?!\d)|\d+)(?P<part>[.,]\d{{1,12}})?"
    rf"[ \u00a0\u202f]?(?P<sign>{_SIGNS})(?![\w/²³·*^])"
)


def spell_units(plain: str, language: str) -> str:
    """`plain` with the units behind figures in words of `language`, which CLDR knows.  The figures stay."""
    return _PATTERN.sub(lambda found: _spelt(found, language), plain)


def _spelt(found: regex.Match, language: str) -> str:
    value = Decimal(regex.sub(r"\D", "", found["figures"]) + (found["part"] or "").replace(",", "."))
    _, words = format_unit(value, _UNITS[found["sign"]], "long", format="0", locale=language).split(maxsplit=1)
    return f"{found['figures']}{found['part'] or ''} {' '.join(words.split())}"
