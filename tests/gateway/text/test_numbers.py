"""Amounts in words: only where one reading is possible, in the notation of the text's language."""

from __future__ import annotations

import pytest

from gateway.text.numbers import spell_numbers

SPELT = [
    ("en", "$250.75", "two hundred and fifty dollars, seventy-five cents"),
    ("en", "It is $1.00, or $0.99.", "It is one dollar, or ninety-nine cents."),
    ("en", "(€1,500)", "(one thousand, five hundred euro)"),
    ("en", "1,500 towns", "one thousand five hundred towns"),
    ("en", "Pi is 3.14.", "Pi is three point one four."),
    ("en", "-3.5 %", "minus three point five percent"),
    ("en", "100% sure", "one hundred percent sure"),
    ("en", "the 3rd, 21st and 112th", "the third, twenty-first and one hundred and twelfth"),
    ("en", "$9.99/mo", "nine dollars, ninety-nine cents/mo"),
    ("de", "1.500,50 €", "eintausendfünfhundert Euro und fünfzig Cent"),
    ("de", "Version 3.11, Wert 3,5", "Version 3.11, Wert drei Komma fünf"),
    ("de", "3,14 und 1.500", "drei Komma eins vier und eintausendfünfhundert"),
    ("fr", "1 500,50 €", "mille cinq cents euros et cinquante centimes"),
    ("fr", "3,5 %", "trois virgule cinq pour cent"),
    ("es", "$250.75", "doscientos cincuenta dólares con setenta y cinco centavos"),
    ("it", "3,5 %", "tre virgola cinque per cento"),
    ("nl", "€ 3,50", "drie euro, vijftig cent"),
    ("pl", "3,5 % i 20 zł", "trzy przecinek pięć procenta i dwadzieścia złotych"),
]
KEPT = [
    ("en", "12/05/2026 at 07:05, 2026-05-12, 10:30"),
    ("en", "+49 30 901820, 555-1234, (030) 123 45 67, 0800 123 123"),
    ("en", "v1.2.3, 192.168.0.1, 1.2.3, 3.5.1"),
    ("en", "1443497378 people in 2026, 42 and 7"),
    ("en", "$5 million, $1.5bn, 3.5k, $3.5 M"),
    ("en", "5.5-6.5, $5-$10, 98.6°F, 2.5 + 3.5"),
    ("en", "1.234,56 and 1,23 and 12,34,56"),
    ("en", "at 5.30 p.m."),
    ("en", "Python 3.11, GPT 4.1, see section 3.2 at 7.30"),
    ("en", "0." + "3" * 13),
    ("en", "x2.5, 2.5x, #1.5, 1.5th"),
    ("de", "am 3. Oktober um 7.30 Uhr"),
    ("pl", "tel. 555 123 456"),
    ("en", "21th, 2th, 1,1st, 3rds"),
]


@pytest.mark.parametrize(("language", "text", "expected"), SPELT)
def test_amounts_are_spelt(language: str, text: str, expected: str) -> None:
    assert spell_numbers(text, language) == expected


@pytest.mark.parametrize(("language", "text"), KEPT)
def test_what_is_uncertain_keeps_its_figures(language: str, text: str) -> None:
    assert spell_numbers(text, language) == text
