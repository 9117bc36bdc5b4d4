"""When an utterance that does not find its end is stopped: pure, one frame at a time.

Two signs tell it from speech.  It is far longer than its text can be, which holds for noise as well; or it has said few
different things for too long, which is what a constant, a short loop and a hum of some codes have in common.
"""

from __future__ import annotations

import re
import unicodedata

# Seconds that no speaker takes.  Over some hundred sentences the embedded voices take 0.4 to 0.9 s for one word, 0.06 s
# for each letter or space of longer texts and 0.35 s for each digit of numbers: these are three to four times as much.
_LEAST_S = 2.0
_LETTER_S = 0.25
_CAPITAL_S = 0.75  # may be spelled out: "WWW"
_SPELLED = re.compile(r"\b[^\W\d_]\b")
_SPELLED_S = 0.5  # more for a letter that stands alone
_WORD_S = 1.0  # what may stand for a word or a long syllable: digits, signs such as % and €, ideographs, kana, Hangul
_PAUSE_S = 0.5  # punctuation
_FIRST_SYLLABIC = "\u0900"  # letters before it are of alphabets: Latin to Arabic

_DULL_S = (2.0, 4.0, 8.0)  # the last ends a stream, as speech around a pause of 5 s is various enough over 8 s
_DIFFERENT = 0.2  # of the frames watched; speech has 0.5 and more over 6 s, a loop of 1.6 s has this over 8 s


def longest_s(text: str) -> float:
    """Seconds that no voice exceeds with `text`, however slow and in whatever language."""
    return _LEAST_S + sum(map(_longest_of, text)) + _SPELLED_S * len(_SPELLED.findall(text))


def _longest_of(character: str) -> float:
    category = unicodedata.category(character)
    if category in ("Lu", "Lt"):
        return _CAPITAL_S
    if category[0] == "L":
        return _LETTER_S if character < _FIRST_SYLLABIC else _WORD_S
    return {"N": _WORD_S, "S": _WORD_S, "P": _PAUSE_S}.get(category[0], 0.0)


class EndGuard:
    """Looks at the semantic code of each frame of one stream."""

    def __init__(self, text: str, frame_rate: float) -> None:
        """`text`: what is spoken; `frame_rate`: frames a second."""
        self._most = round(longest_s(text) * frame_rate)
        self._spans = [round(seconds * frame_rate) for seconds in _DULL_S]
        self._codes: list[int] = []

    def add(self, code: int) -> int | None:
        """The next frame's semantic code -> None while all is well; else the stream is over, and so many of its frames
        are worth hearing: a dull stretch behind them is not."""
        self._codes.append(code)
        if len(self._codes) < self._most and not self._is_dull(self._spans[-1]):
            return None
        return self._before_dull_end()

    def _is_dull(self, frames: int) -> bool:
        """Whether the last `frames` have few different codes."""
        return len(self._codes) >= frames and len(set(self._codes[-frames:])) <= _DIFFERENT * frames

    def _before_dull_end(self) -> int:
        """Frames before the last ones that are nothing but the codes of a dull end; all, if that is not dull.

        The shortest span that is dull tells its codes best: a longer one may reach into the speech before it.
        """
        span = next(filter(self._is_dull, self._spans), None)
        if span is None:
            return len(self._codes)
        stretch = set(self._codes[-span:])
        kept = len(self._codes) - span
        while kept and self._codes[kept - 1] in stretch:
            kept -= 1
        return kept
