"""The texts that the teacher speaks: dictionary sentences, everyday talk, and pieces as a segmenter cuts them.

A voice service hands the model clauses ("If you need more time,") as often as sentences, so a share of the lines is
cut at clause marks, a few even between two words, and some lines are joined to reach the length of a paragraph.
"""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Iterator
from pathlib import Path

from inference.training.phrases import short_utterance, spelled, talk

DATA = Path(__file__).parent / "data"
LONGEST = 165
"""Characters of the longest text: a little above what a segmenter passes on at once."""

_CLAUSE = re.compile(r"(?<=[,;:])\s+")
_SHARE_SHORT, _SHARE_TALK, _SHARE_WORD = 0.05, 0.20, 0.02
_SHARE_JOIN, _SHARE_CLAUSE, _SHARE_OPEN = 0.22, 0.7, 0.03


def sentences() -> list[str]:
    """The distinct sentences of `data/sentences.txt.gz`, without any that is held out."""
    kept_back = set(heldout())
    with gzip.open(DATA / "sentences.txt.gz", "rt", encoding="utf-8") as lines:
        return [text for line in lines if (text := line.strip()) not in kept_back]


def heldout() -> list[str]:
    """The sentences that are never trained on; the voice is judged by them."""
    return (DATA / "heldout.txt").read_text(encoding="utf-8").split("\n")[:-1]


def pass_texts(number: int, worker: int = 0, workers: int = 1) -> Iterator[str]:
    """Texts of pass `number` over the sentences, the share of one of `workers`: the same for the same arguments."""
    lines, kept_back = sentences(), set(heldout())
    random.Random(number).shuffle(lines)
    lines = lines[worker::workers]
    rng = random.Random(number * 1009 + worker)
    previous = ""
    for line in lines:
        while rng.random() < _SHARE_SHORT + _SHARE_TALK + _SHARE_WORD:
            if (text := _extra(line, rng)) not in kept_back:
                yield text
        yield from _pieces(_joined(line, previous, rng), rng)
        previous = line


def _extra(line: str, rng: random.Random) -> str:
    """A short utterance, a sentence of talk (or two), or one word of `line`."""
    kind = rng.choices(("short", "talk", "word"), (_SHARE_SHORT, _SHARE_TALK, _SHARE_WORD))[0]
    if kind == "short":
        return short_utterance(rng)
    if kind == "talk":
        text = talk(rng)
        return f"{text} {talk(rng)}" if rng.random() < 0.3 else text
    if rng.random() < 0.3:
        return spelled(rng)
    return rng.choice(re.findall(r"[A-Za-z']+", line)).capitalize() + rng.choice((".", ".", "!", "?", ","))


def _joined(line: str, previous: str, rng: random.Random) -> str:
    """`line`, sometimes after a short utterance or the line before it."""
    if rng.random() >= _SHARE_JOIN:
        return line
    before = previous if rng.random() < 0.7 else short_utterance(rng)
    text = f"{before} {line}" if before and line[0].isupper() and before[-1] in ".!?" else line
    return text if len(text) <= LONGEST else line


def _pieces(text: str, rng: random.Random) -> list[str]:
    """`text` whole, or as the pieces that a segmenter would make of it."""
    if rng.random() < _SHARE_OPEN and text.count(" ") > 4:
        words = text.split()
        cut = rng.randint(2, len(words) - 2)
        return [" ".join(words[:cut]), " ".join(words[cut:])]
    if rng.random() < _SHARE_CLAUSE and _CLAUSE.search(text):
        return _CLAUSE.split(text)
    return [text]
