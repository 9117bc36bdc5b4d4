"""Text preparation: from the received characters to what the model is given.

Only what cannot be spoken is taken out: invisible characters, emoji, control tokens and the marks of Markdown.  Words
are never changed, whatever the language.  The received text itself is kept verbatim by whoever calls this.
"""

from __future__ import annotations

import re
import unicodedata

_CONTROL_TOKEN = re.compile(r"<\|[^|<>\s]{1,64}\|>")
_MARKUP = re.compile(
    r"""
      ^[ \t]*(?:`{3,}|~{3,})[\w+.-]*[ \t]*(?=\n) # a line that opens a fenced block, its language included
    | ^[ \t]*\#{1,6}[ ]                          # heading
    | ^[ \t]*[*>-][ ](?=\S)                      # bullet, quotation
    | ^[ \t]*(?:[*_-][ \t]*){3,}$                # horizontal rule
    | `+ | ~{2,} | \*{2,}                        # code, strike-through, bold
    | (?<![\w\s])\*(?=\S) | (?<=\S)\*(?![\w\s])  # emphasis, but not the sign in "2 * 3" and "a*b"
    | (?<!\S)\*(?=\S) | (?<=\S)\*(?!\S)
    | (?<!\w)_+(?=\w) | (?<=[^\W_])_+(?!\w)      # emphasis, but not inside snake_case
    """,
    re.VERBOSE | re.MULTILINE,
)
_JOINERS = "\u200c\u200d"  # orthography behind letters of Persian and Indic scripts, glue between emoji elsewhere
_FIRST_JOINING_SCRIPT = "\u0600"
_SPOKEN_SYMBOLS_END = 0x2190  # below it symbols have names that are read out, such as ° © ™ №; arrows begin there
_ENCLOSED_CJK = range(0x3200, 0x3400)  # ㈱ ㎏ ㎡ are read as well

_ANY_SYMBOL = "\u2756"  # stands for something that is left out but separates words


def is_speech(character: str) -> bool:
    """Whether the character is a letter, a digit or another number: something that makes a sound."""
    return character.isalnum()


def spoken(text: str) -> str:
    """What the model is given for `text`: its words with single spaces between them, "" if nothing can be spoken."""
    text = _CONTROL_TOKEN.sub(_ANY_SYMBOL, text)
    text = _MARKUP.sub("", text)
    text = _without_unspeakable(text)
    if not any(map(is_speech, text)):
        return ""
    return " ".join(text.split())


def _without_unspeakable(text: str) -> str:
    """Drop emoji and invisible characters; two words that had only those between them stay two words."""
    kept = [" "]
    dropped = False
    for character in text:
        if _is_symbol(character):
            dropped = True
        elif character.isspace() or not _is_invisible(character, kept[-1]):
            if dropped and is_speech(kept[-1]) and is_speech(character):
                kept.append(" ")
            kept.append(character)
            dropped = False
    return "".join(kept)


def _is_symbol(character: str) -> bool:
    """Emoji, dingbats, arrows and their modifiers."""
    if character < "\u0080":
        return False
    code = ord(character)
    category = unicodedata.category(character)
    if category == "So":
        return code >= _SPOKEN_SYMBOLS_END and code not in _ENCLOSED_CJK
    return category == "Me" or 0x1F3FB <= code <= 0x1F3FF  # keycap, skin tones


def _is_invisible(character: str, previous: str) -> bool:
    """Control, format and variation characters, halves of surrogate pairs, private and replacement characters."""
    if character < "\u0080":
        return character < " " or character == "\x7f"
    if character in _JOINERS:
        return previous < _FIRST_JOINING_SCRIPT or unicodedata.category(previous)[0] not in "LM"
    if character == "\ufffd" or "\ufe00" <= character <= "\ufe0f":
        return True
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn")
