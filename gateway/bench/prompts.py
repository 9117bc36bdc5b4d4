"""The texts that a load test speaks: seeded, from plain sentences, or the lines of a file."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

_BUILT_IN = Path(__file__).with_name("sentences.txt")


def built_in() -> list[str]:
    """Plain English sentences."""
    return read_lines(_BUILT_IN)


def read_lines(path: Path) -> list[str]:
    """The lines of a file that are not empty.  Raises OSError, and UnicodeDecodeError for what is not UTF-8."""
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def texts(sentences: Sequence[str], count: int, words: int, seed: int = 0) -> list[str]:
    """`count` texts of at least `words` words each, made of whole sentences; the same for the same seed."""
    rng, made = random.Random(seed), []
    for _ in range(count):
        chosen: list[str] = []
        while sum(len(sentence.split()) for sentence in chosen) < words:
            chosen.append(rng.choice(sentences))
        made.append(" ".join(chosen))
    return made


def repeated(lines: Sequence[str], count: int) -> list[str]:
    """`count` of the lines, in order, and from the beginning again."""
    return [lines[index % len(lines)] for index in range(count)]
