"""Signs and short forms in words: only where one reading is possible, in the text's language."""

from __future__ import annotations

import pytest
from reading import said, segment

from gateway.text.reading_out import read_out
from gateway.text.segmenter import Segmenter

READ = [
    ("en", "1 kg, 10 kg and 2.5 kg", "one kilogram, ten kilograms and two point five kilograms"),
    ("en", "at 90 km/h or 1,500 km", "at ninety kilometers per hour or one thousand five hundred kilometers"),
    (
        "en",
        "-5 °C, 10-20 cm, 16GB, 3 m²",
        "minus five degrees Celsius, 10-20 centimeters, sixteen gigabytes, three square meters",
    ),
    ("de", "2,5 kg bei 20 °C", "zwei Komma fünf Kilogramm bei zwanzig Grad Celsius"),
    ("pl", "5 km i 2,5 km", "pięć kilometrów i dwa przecinek pięć kilometra"),
    ("fr", "1 km et 3 km", "un kilomètre et trois kilomètres"),
    ("en", "5 – 6 km, 1.500 kg, 2-5 °C", "5 – 6 kilometers, one point five zero zero kilograms, 2-5 degrees Celsius"),
    ("en", "E.g. fruit, i.e. apples, etc.", "For example fruit, that is apples, et cetera."),
    ("en", "Pens, etc. Then paper etc. and ink", "Pens, et cetera. Then paper et cetera and ink"),
    ("de", "z. B. das, d.h. jenes, usw. Und", "zum Beispiel das, das heißt jenes, und so weiter. Und"),
    ("nl", "bijv. dit, o.a. dat", "bijvoorbeeld dit, onder andere dat"),
    ("en", "Mail a.b@c.org, see c.com/d.", "Mail a dot b at c dot org, see c dot com slash d."),
    ("fr", "moi@exemple.fr", "moi arobase exemple point fr"),
    ("en", "PLEASE CLOSE THE DOOR, I SAID.", "Please close the door, I said."),
    ("en", "Stop! I TOLD YOU SO, HENRY.", "Stop! I told you so, henry."),
    ("de", "DAS IST ÜBER ALLE MASSEN GROSS", "Das ist über alle massen gross"),
]
KEPT = [
    ("en", "5 m, 3 g, 12 V, 5G, v2.5kg, 10 kg/m, 5 kgs"),
    ("en", "e.g.x, U.S. and 5 p.m., a.k.a., No. 5, St. Louis"),
    ("en", "12345.Let me. end.It was. 1.2.3 and a.b.c, x.y, me@home, @someone, 192.168.0.1"),
    ("en", "user@host:~/dir and ::1"),
    ("en", "The USA AND UK, NASA, HTTP AND TLS"),
    ("en", "This is VERY LOUD."),
    ("en", "第7次，共3.5公里，5 kg"),
    ("en", "السعر 12.5 kg"),
    ("ja", "3.5 kg $5 a@b.org"),
    ("xx", "$250.75"),
]


@pytest.mark.parametrize(("language", "text", "expected"), READ)
def test_signs_are_read_out(language: str, text: str, expected: str) -> None:
    assert read_out(text, language) == expected


@pytest.mark.parametrize(("language", "text"), KEPT)
def test_what_could_be_read_otherwise_stays(language: str, text: str) -> None:
    assert read_out(text, language) == text


def test_addresses_of_links_are_read_out_too() -> None:
    assert said("See https://www.example.com/a?b=c.", "en") == "See example dot com slash a."


def test_a_segment_is_read_out_whole_however_it_came() -> None:
    text = "Write to anna@example.com, e.g. about 10 kg of apples."
    whole = [piece.spoken for piece in segment([text], Segmenter("sentence"))]
    assert [piece.spoken for piece in segment(text, Segmenter("sentence"))] == whole
    assert whole == ["Write to anna at example dot com, for example about ten kilograms of apples."]
