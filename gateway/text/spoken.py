"""From a segment of plain text to what the model is given.  Words are never changed but by `reading_out`."""

from __future__ import annotations

import re
import unicodedata

from gateway.text.characters import CELL, GAP, IDEOGRAPHS, is_speech
from gateway.text.reading_out import read_out

_SPACE = re.compile(rf"[\s{CELL}{GAP}]+")
_IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}]")
_STRAY_CLOSER = re.compile(r"^[»›] ")  # French: the space before it ended the segment, as behind any stop
_LONGEST_SPELT = 400  # characters: where figures become more words than that, they stay, and leave the model room
_CLOSING = ".,;:!?)…%。，！？、；：）"


def spoken(plain: str, read_in: str | None = None) -> str:
    """What the model is given for plain text: words with single spaces between them, and a stop where a block ends
    without one; "" if nothing can be spoken.  `read_in`: in which language signs are read out, None: they are not."""
    if read_in is not None:
        spelt = read_out(plain, read_in)
        plain = spelt if len(spelt) <= _LONGEST_SPELT else plain
    text = _STRAY_CLOSER.sub("", _SPACE.sub(_join, plain))
    return text if any(map(is_speech, text)) else ""


def verbatim(text: str) -> str:
    """The text as it is but for white space; "" if nothing can be spoken."""
    return " ".join(text.split()) if any(map(is_speech, text)) else ""


def _join(space: re.Match[str]) -> str:
    """What stands for white space and what was left out: nothing at the ends, at most one space elsewhere."""
    before, after = space.string[space.start() - 1 : space.start()], space.string[space.end() : space.end() + 1]
    if not before or not after:
        return ""
    if space[0].count("\n") > 1:
        return _pause(before, ".", "。")
    if CELL in space[0]:
        return _pause(before, ",", "、")
    if GAP in space[0] and after in _CLOSING:
        return ""
    if not space[0].strip(GAP):
        return " " if is_speech(before) and is_speech(after) else ""
    return " "


def _pause(before: str, mark: str, ideographic_mark: str) -> str:
    """A mark, unless there is one, and the space behind it."""
    if _IDEOGRAPH.match(before):
        return ideographic_mark
    return f"{mark} " if unicodedata.category(before)[0] in "LMNS" or before == "%" else " "
