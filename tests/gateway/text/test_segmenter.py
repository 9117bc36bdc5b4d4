"""The segmenter loses nothing, cuts only where it may, and does not depend on how text is split into messages."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import segment

from gateway.text.segmenter import Granularity, Segment, Segmenter

# Text with all that the rules look at; plain st.text() would hardly ever have a sentence.
WORDS = "hello|World |It |the day |confirmation|今天天气|नमस्ते। |สวัสดี|a|B|e\u0301|3.14|$3.50|Dr. Smith|U.S. Army|5 p.m."
MARKS = '. |... |! |? |, |; |: | — |—|…|。|！|，|」|。”|." |.) |\n|\n\n| |   |.|,|1. |👍|**'
TEXTS = st.lists(st.sampled_from(f"{WORDS}|{MARKS}".split("|")) | st.text(max_size=4), max_size=60).map("".join)
GRANULARITIES: list[Granularity] = ["clause", "sentence", "none"]


def texts(segments: Sequence[Segment]) -> list[str]:
    """What the segments say, without the space around it."""
    return [piece.text.strip() for piece in segments]


def split_at(text: str, cuts: Iterable[int]) -> list[str]:
    """`text` as messages that begin at the given positions."""
    borders = [0, *sorted(cuts), len(text)]
    return [text[start:end] for start, end in pairwise(borders)]


@st.composite
def messages(draw: st.DrawFn) -> list[str]:
    """A text, split anywhere."""
    text = draw(TEXTS)
    return split_at(text, draw(st.sets(st.integers(0, len(text)), max_size=30)))


@given(messages(), st.sampled_from(GRANULARITIES), st.booleans(), st.integers(1, 200))
def test_no_character_is_lost(pieces: list[str], granularity: Granularity, sentence: bool, size: int) -> None:
    segmenter = Segmenter(granularity, first_needs_sentence=sentence, max_characters=size)
    text, out = "", ""
    for piece in pieces:
        text += piece
        out += "".join(s.text for s in segmenter.push(piece, 0.0))
        assert segmenter.buffered == len(text) - len(out)
    out += "".join(s.text for s in segmenter.flush())
    assert out == text
    assert segmenter.buffered == 0


@settings(max_examples=300)
@given(messages(), st.sampled_from(GRANULARITIES), st.booleans(), st.sampled_from([20, 150]))
def test_messages_do_not_matter(pieces: list[str], granularity: Granularity, sentence: bool, size: int) -> None:
    def run(parts: Iterable[str]) -> list[Segment]:
        return segment(parts, Segmenter(granularity, first_needs_sentence=sentence, max_characters=size))

    whole = run(["".join(pieces)])
    assert run(pieces) == whole
    assert run("".join(pieces)) == whole


@given(st.lists(st.text("abcXYZ.,!?'3:", min_size=1, max_size=12), max_size=80))
def test_words_are_not_cut(words: list[str]) -> None:
    pieces = segment([" ".join(words)])
    assert [word for piece in pieces for word in piece.text.split()] == words
    assert all(len(piece.text) <= 151 for piece in pieces)


TOKENS = (
    "Pi is 3.|14 and the body is at 98.|6°F. It costs $3.|50 at example.|com, says Dr.| Smith of the U.|S. Army "
    "at 5 p.|m. today. v1.|2.|3 is out."
).split("|")


def test_stops_inside_numbers_names_and_abbreviations_are_no_ends() -> None:
    assert texts(segment(TOKENS, Segmenter("sentence"))) == [
        "Pi is 3.14 and the body is at 98.6°F.",
        "It costs $3.50 at example.com, says Dr. Smith of the U.S. Army at 5 p.m. today.",
        "v1.2.3 is out.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(Explore these until you say done.) Then go on.", ["(Explore these until you say done.)", "Then go on."]),
        ('He said "Hello there." Bye for now.', ['He said "Hello there."', "Bye for now."]),
        ('"What a day it was!" she said. And I left.', ['"What a day it was!" she said.', "And I left."]),
        ("We stay (with Mr. X. and co.) at home now. Fine.", ["We stay (with Mr. X. and co.) at home now.", "Fine."]),
        ("Wait.... what is this now? Nothing.", ["Wait.... what is this now?", "Nothing."]),
        ("It ended at 5 p.m. Today we begin again.", ["It ended at 5 p.m.", "Today we begin again."]),
        ("I was there at 5 p.m. I left.", ["I was there at 5 p.m.", "I left."]),
        ("你好,世界!今天3,5个;再见", ["你好,世界!", "今天3,5个;再见"]),  # marks of the Latin kind
        ("J. R. R. Tolkien wrote it. He was good.", ["J. R. R. Tolkien wrote it.", "He was good."]),
        ("今天天气很好。我们去公园吧！“真的可以。”他说", ["今天天气很好。", "我们去公园吧！", "“真的可以。”", "他说"]),
        ("नमस्ते दोस्तों, आप आइए। कैसे हो आप लोग?", ["नमस्ते दोस्तों, आप आइए।", "कैसे हो आप लोग?"]),
        ("هل أنت بخير اليوم؟ نعم بالطبع.", ["هل أنت بخير اليوم؟", "نعم بالطبع."]),
        ("A title of some length\n\nAnd its text.", ["A title of some length", "And its text."]),
        (
            "Take the following:\n1. A first thing\n2. A second thing",
            ["Take the following:", "1. A first thing", "2. A second thing"],
        ),
        ("Hi. I am. So it is. Yes, indeed. No.", ["Hi. I am.", "So it is. Yes, indeed.", "No."]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert texts(segment(text, Segmenter("sentence"))) == expected


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("yue", "今日天氣好好，去玩啦。| 得唔得呀？| 得！行啦行啦。"),
        ("zh", "价格是3.5元，共2个。| 他说：“你好吗。”| 然后走了。"),
        ("nl", "Dat kost € 3,50 volgens mevr. de Vries. | Zij komt bijv. om 5 uur. | Goed dan maar."),
        (
            "en",
            "Dr. Smith paid $3.50 at example.com in the U.S. Army. | Version 1.2.3 is in vol. 3 of it. | Good enough.",
        ),
        ("fr", "« C'est moi », dit M. Dupont à MM. Petit. | Elle mesure 5 m. | Ensuite il part."),
        ("it", "L'arch. Bianchi e la dott.ssa Neri, via Roma n. 5, sono qui. | Va bene così."),
        ("pl", "Przy al. Róż 3 mieszka ks. Adam, tel. 555, str. 12, od godz. 5. | To wszystko na dziś."),
        ("fr", "M. Dupont et Mme. Durand ont 3,5 % de plus. | Est-ce que c'est vrai ? | Bien sûr que oui !"),
        ("de", "Am 3. Oktober kostet es z. B. 1.500,50 €. | Das sagt Dr. Meier, bzw. Frau Kunz. | Na dann gut."),
        ("it", "Il sig. Rossi e la dott. Bianchi pagano 3,50 €. | Non è vero, forse? | Così è la vita."),
        ("ja", "気温は25.5℃です。| 「本当に暑いですね。」| と彼は言った。"),
        ("ko", "가격은 1,500.50원입니다 여러분. | 정말로 그렇게 비싼가요? | 네 그렇습니다."),
        ("pl", "Prof. Kowalski ma np. 3,5 % więcej. | To jest dużo, prawda? | Tak jest dobrze."),
        ("es", "La Sra. López paga 1.500,50 € hoy. | ¿No le parece demasiado? | ¡Claro que sí, hombre!"),
    ],
)
def test_sentences_of_the_models_languages(language: str, text: str) -> None:
    sentences = [sentence.strip() for sentence in text.split("|")]
    assert texts(segment(text.replace("|", ""), Segmenter("sentence", language=language))) == sentences


@pytest.mark.parametrize(
    ("received", "ready"),
    [
        ("Once upon a time,", []),  # 1,5 is still possible
        ("Once upon a time, ", ["Once upon a time,"]),
        ("Well, ", ["Well,"]),
        ("On May 5, 2026, we", ["On May 5, 2026,"]),
        ("On page 5, ", []),  # a year may follow
        ("On page 5, th", ["On page 5,"]),
        ("你好,世", ["你好,"]),
        ("So, ", []),  # too short to be understood by itself
        ("It costs 1,500 euros", []),
        ("I will look that up.", []),
        ("I will look that up. ", ["I will look that up."]),
        ("I will ask Dr. ", []),
        ("I will ask Dr. Smith", []),
        ("I will look that up.\n", ["I will look that up."]),
        ("A letter from Dr.", []),
        ("Wait a moment... and", ["Wait a moment..."]),
        ("今天天气很好。", []),  # a closing quotation mark belongs to it
        ("今天天气很好。我", ["今天天气很好。"]),
        ("今天天气很好。」", []),
        ("Nothing like that — ", ["Nothing like that —"]),
        ("The word confirmation", []),
    ],
)
def test_first_segment_is_ready_as_soon_as_it_is_certain(received: str, ready: list[str]) -> None:
    segmenter = Segmenter("clause")
    assert texts([piece for character in received for piece in segmenter.push(character, 0.0)]) == ready


STORY = (
    "Once upon a time, there was a village. It lay by the sea, under a hill, and nobody there was ever in a hurry, "
    "not even on Mondays. In the morning, the boats went out. So it went on, as far as anyone knew, for ever."
)
SENTENCES_OF_STORY = [
    "there was a village.",
    "It lay by the sea, under a hill, and nobody there was ever in a hurry, not even on Mondays.",
    "In the morning, the boats went out.",
    "So it went on, as far as anyone knew, for ever.",
]


def type_slowly(segmenter: Segmenter, text: str, characters_per_second: float) -> list[tuple[float, str]]:
    """Time and text of each segment when one character comes at a time and every deadline is kept."""
    released = []
    for index, character in enumerate(text):
        now = index / characters_per_second
        if segmenter.deadline is not None and segmenter.deadline < now:
            at = segmenter.deadline
            released += [(at, piece.text.strip()) for piece in segmenter.expire(at)]
        released += [(now, piece.text.strip()) for piece in segmenter.push(character, now)]
    return released + [(len(text) / characters_per_second, piece.text.strip()) for piece in segmenter.flush()]


def test_a_clause_first_then_sentences() -> None:
    assert texts(segment([STORY])) == ["Once upon a time,", *SENTENCES_OF_STORY]
    fast = type_slowly(Segmenter("clause"), STORY, 200)
    assert [text for _, text in fast] == ["Once upon a time,", *SENTENCES_OF_STORY]


def test_clauses_for_a_listener_who_would_run_dry() -> None:
    slow = type_slowly(Segmenter("clause"), STORY, 20)
    assert [text for _, text in slow][:5] == [
        "Once upon a time,",
        "there was a village.",
        "It lay by the sea,",
        "under a hill,",
        "and nobody there was ever in a hurry,",
    ]
    heard_at = slow[0][0]
    for (_, before), (released, _) in pairwise(slow[:5]):
        heard_at += len(before) / 15
        assert released < heard_at + 0.1


def test_a_clause_is_released_by_the_clock_while_the_text_source_is_silent() -> None:
    segmenter = Segmenter("clause")
    segmenter.push("I will look that up for you. Just a moment please, it", 1.0)
    assert segmenter.deadline == pytest.approx(1.0 + 21 / 14.5 - 0.8)
    assert segmenter.expire(1.1) == []
    assert texts(segmenter.expire(segmenter.deadline)) == ["Just a moment please,"]
    assert segmenter.deadline is None
    assert segmenter.buffered == len(" it")


def test_long_sentence_is_cut_at_a_clause_else_between_words() -> None:
    clauses = ", ".join(["it was the best of times"] * 10)
    first, *_ = texts(segment([clauses], Segmenter("sentence")))
    assert first.endswith("times,") and 100 < len(first) <= 150
    words = texts(segment([("lorem " * 1000).strip()]))
    assert all(set(piece.split()) == {"lorem"} and len(piece) <= 150 for piece in words)
    assert texts(segment(["今" * 400])) == ["今" * 150, "今" * 150, "今" * 100]
    assert texts(segment(["e\u0301" * 100], Segmenter("clause", max_characters=101)))[0] == "e\u0301" * 50


def test_without_a_voice_the_first_segment_is_long_enough_to_be_one() -> None:
    def first(text: str) -> str:
        return texts(segment([text], Segmenter("clause", first_needs_sentence=True)))[0]

    assert first("Once upon a time, there was a village, by the sea.") == "Once upon a time, there was a village,"
    assert first("There it was. By the sea, of course.") == "There it was."
    segmenter = Segmenter("clause", first_needs_sentence=True)
    assert texts(segmenter.push("There it was. By the big sea, of course", 0.0)) == ["There it was.", "By the big sea,"]


def test_granularity_none_waits_for_flush_or_size() -> None:
    segmenter = Segmenter("none", max_characters=40)
    assert segmenter.push("One thing here. Another thing, too. ", 0.0) == []
    assert texts(segmenter.push("And a third", 0.0)) == ["One thing here. Another thing, too."]
    assert texts(segmenter.flush()) == ["And a third"]


def test_text_without_speech_makes_no_speech() -> None:
    for text in ("", " ", "...", "!?", "👍" * 200, "** **", "\u200b"):
        assert all(piece.spoken == "" for piece in segment(text))
    first, second, third = segment("😄Hi😄 there😄. 😀Again we speak😃! Well")
    assert (first.spoken, second.spoken, third.spoken) == ("Hi there.", "Again we speak!", "Well")


def test_split_words_arrive_whole() -> None:
    (piece,) = segment(["What", " ", "is", " ", "the", " ", "weather", "?"])
    assert piece.spoken == "What is the weather?"
    (piece,) = segment(["Hello <|im_", "end|> world"])
    assert piece.spoken == "Hello world"
    (piece,) = segment(["See exam", "ple.", "com"])
    assert piece.spoken == "See example dot com"


def test_flush_releases_half_words_and_starts_anew() -> None:
    segmenter = Segmenter("clause")
    assert texts(segmenter.push("A first sentence is here. Unbel", 0.0)) == ["A first sentence is here."]
    assert texts(segmenter.flush()) == ["Unbel"]
    assert segmenter.flush() == []
    assert texts(segmenter.push("Once upon a time, there", 0.0)) == ["Once upon a time,"]


def test_delay_releases_complete_words() -> None:
    segmenter = Segmenter("clause", max_buffer_delay_s=0.5)
    assert segmenter.deadline is None
    segmenter.push("  ", 9.0)
    assert segmenter.deadline is None
    segmenter.push("I will look th", 10.0)
    assert segmenter.deadline == 10.5
    assert segmenter.expire(10.4) == []
    assert [piece.text for piece in segmenter.expire(10.5)] == ["  I will look"]
    assert segmenter.deadline == 11.0
    assert segmenter.expire(11.0) == []
    assert segmenter.deadline is None  # one word only: the next that arrive are released at once
    assert segmenter.push("at up", 12.0) == []
    assert [piece.text for piece in segmenter.push(" for you", 12.1)] == [" that up for"]


def test_delay_does_not_cut_spaced_figures() -> None:
    segmenter = Segmenter("clause", max_buffer_delay_s=0.0)
    assert texts(segmenter.push("It will cost 1 ", 1.0)) == ["It will cost"]
    assert texts(segmenter.push("500 ", 1.1) + segmenter.push("€ or so ", 1.2)) == ["1 500 € or so"]


def test_delay_of_zero_releases_words_as_they_arrive() -> None:
    segmenter = Segmenter("clause", max_buffer_delay_s=0.0)
    assert texts(segmenter.push("we go on and o", 1.0)) == ["we go on and"]
    assert texts(segmenter.push("n and on", 1.0)) == []
    assert texts(segmenter.push(" for ever ", 1.1)) == ["on and on for ever"]


PATHOLOGICAL = 'x|a. |a, |. |.| |\n|👍|Dr. A |."|今|No… A|<|**|(a.) |I am. |\u0301|—|"…#|… '.split("|")


@pytest.mark.parametrize("unit", PATHOLOGICAL)
def test_cost_is_linear_and_every_call_short(unit: str) -> None:
    def cost(length: int) -> tuple[float, float]:
        segmenter = Segmenter("clause")
        longest = total = 0.0
        for character in (unit * length)[:length]:
            begin = time.process_time()
            segmenter.push(character, 0.0)
            spent = time.process_time() - begin
            longest, total = max(longest, spent), total + spent
        return longest, total

    half, whole = min(cost(5_000)[1] for _ in range(2)), cost(10_000)
    assert whole[0] < 0.05
    assert whole[1] < 4 * half + 0.05
    begin = time.process_time()
    segment([(unit * 8_000)[:8_000]])
    assert time.process_time() - begin < 0.15  # nobody else is served meanwhile
