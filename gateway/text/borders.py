"""Where a text that is still arriving may be cut: a pure function of the text, never of how it was split on its way.

A border is *certain* once no further text can take it back.  Behind a clause mark that takes white space; behind a full
stop of Chinese, Japanese, Hindi or Arabic any next character; behind a stop of the Latin kind white space and, where
the word before could be an abbreviation, the word after it.  `sentencex` knows the abbreviations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

import sentencex

from gateway.text.abbreviations import goes_on
from gateway.text.characters import CELL, GAP, IDEOGRAPHS

_HARD_STOPS = "。！？｡।॥؟۔።፧։"  # these end a sentence whatever follows
_SOFT_STOPS = ".!?…‥．"  # these may also stand in a number, a name or an abbreviation
_CLAUSE_MARKS = ",;:،؛–"  # certain before white space only: 3,14 and 10:30 have none
_CLAUSE_MARKS_ANYWHERE = f"—，、；：､{CELL}"
_CLOSERS = f"'\"’”»›」』*_)]}}）】〕〉》{GAP}"

# The counts are bounded so that text of nothing but marks or spaces costs no more than any other.
_MARK = re.compile(
    rf"""
    (?: (?P<stop>[{re.escape(_HARD_STOPS + _SOFT_STOPS)}]{{1,16}})
      | (?P<clause>[{re.escape(_CLAUSE_MARKS + _CLAUSE_MARKS_ANYWHERE)}])
    ) (?P<closers>[{re.escape(_CLOSERS)}]{{0,8}}) (?P<space>\s{{0,16}})
    | (?P<line>\n\s{{0,16}})
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"\w[\w'’]{0,15}")
_LIST_NUMBER = re.compile(r"(?:^|\n)\s*\d{1,3}\.$")
_IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}]")
_CONTEXT = 80  # characters before a stop that the language's rules look at
_WORD_END = re.compile(rf"(?<=\S)(?=\s)|(?<=[{IDEOGRAPHS}])(?=[{IDEOGRAPHS}])")
_INSIDE_FIGURES = re.compile(r"(?<=\d)\s(?:[\d$€£%]|\Z)")  # "1 500 €", "030 901820": more of a number may follow


class Rank(IntEnum):
    """How good a border is."""

    NONE = 0
    CLAUSE = 1
    SENTENCE = 2


@dataclass(frozen=True, slots=True)
class Mark:
    """Punctuation or a line break at `text[start:end]`; the border that it makes, if any, is at `cut`.

    `final` is False while further text could still raise the rank.
    """

    start: int
    cut: int
    end: int
    rank: Rank
    final: bool


def next_mark(text: str, position: int, language: str = "en") -> Mark | None:
    """The first mark of `text` at or behind `position`.  `text` begins where the sentence does, as far as is known."""
    found = _MARK.search(text, position)
    if found is None:
        return None
    cut = found.start() if found["line"] else found.end("closers")
    rank = _rank(found, text, language)
    final = rank == Rank.SENTENCE or _is_final(found, text)
    return Mark(found.start(), cut, found.end(), rank, final)


def word_ends(text: str) -> list[int]:
    """Positions behind the complete words of `text`; every ideograph counts as a word, the last one as incomplete.
    Groups of figures are one word, unless the text has no other."""
    ends = [found.start() for found in _WORD_END.finditer(text)]
    return [end for end in ends if not _INSIDE_FIGURES.match(text, end)] or ends


def count_ideographs(text: str) -> int:
    """How many characters of `text` are written without spaces and stand for about a syllable each."""
    return len(_IDEOGRAPH.findall(text))


def _rank(found: re.Match[str], text: str, language: str) -> Rank:
    """The rank that the text received so far is enough for."""
    space = found["line"] or found["space"]
    if space.count("\n") > 1:
        return Rank.SENTENCE  # a blank line
    if found["line"]:
        return Rank.CLAUSE
    follows = found.end() < len(text)
    if not space and _between_ideographs(found, text):
        return Rank.SENTENCE if found["stop"] else Rank.CLAUSE
    if clause := found["clause"]:
        if clause == "," and space and _between_figures(found, text):
            return Rank.NONE
        return Rank.CLAUSE if space or (follows and clause in _CLAUSE_MARKS_ANYWHERE) else Rank.NONE
    if found["stop"][-1] in _HARD_STOPS:
        return Rank.SENTENCE if space or follows else Rank.NONE
    if not space:
        return Rank.CLAUSE if follows and found["stop"][-1] in "…‥" else Rank.NONE
    if _ends_sentence(found, text, language):
        return Rank.SENTENCE
    pauses = found["closers"].strip(GAP) or "\n" in space or found["stop"][-1] in "…‥!?" or found["stop"].endswith("..")
    return Rank.CLAUSE if pauses else Rank.NONE


def _between_ideographs(found: re.Match[str], text: str) -> bool:
    """Whether a mark of the Latin kind stands where one of Chinese or Japanese is meant: "你好,世界!再见"."""
    around = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
    return all(map(_IDEOGRAPH.match, around)) and found[0][-1] in ",;:!?"


def _between_figures(found: re.Match[str], text: str) -> bool:
    """Whether the comma may be that of "May 5, 2026": figures stand before it, and behind it or nothing yet."""
    return text[found.start() - 1 : found.start()].isdigit() and (text[found.end() : found.end() + 1] or "0").isdigit()


def _is_final(found: re.Match[str], text: str) -> bool:
    """Whether all that the decision looks at has arrived: the mark's surroundings and, behind a stop, the next word."""
    if found.end() == len(text):
        return False
    if found["stop"] and found["space"] and text[found.end()].isupper():
        return _next_word(found, text) is not None
    return True


def _ends_sentence(found: re.Match[str], text: str, language: str) -> bool:
    """Whether the sentence certainly ends at a stop that white space follows."""
    stop = found.end("stop")
    before = text[max(0, stop - _CONTEXT) : stop].replace("…", "...").replace("‥", "..")
    if _LIST_NUMBER.search(before) or goes_on(before, language):
        return False
    if not _WORD.search(before):  # no word, no sentence, and no rules to ask
        return False
        return False
    following = text[found.end() : found.end() + 1]
    if found["closers"].strip(GAP):  # a whole sentence in quotation marks or brackets, unless the one around it goes on
        return bool(following) and not following.islower() and _splits(before, following, language)
    if all(_splits(before, probe, language) for probe in "aA1"):
        return True  # whatever follows
    if "\n" in found["space"] and _splits(before, "A", language):
        return True
    if not following:
        return False
    word = _next_word(found, text)
    return _splits(before, following, language) or (word is not None and _splits(before, word, language))


def _next_word(found: re.Match[str], text: str) -> str | None:
    """The word behind a mark, None while more of it may come."""
    word = _WORD.match(text, found.end())
    return word[0] if word and word.end() < len(text) else None


def _splits(before: str, after: str, language: str) -> bool:
    """Whether the language's rules end a sentence between the two."""
    pieces = sentencex.segment(language, f"{before} {after}")
    return len(pieces) > 1 and pieces[-1] == after
