"""Kinds of characters, and the two signs that plain text has of its own."""

from __future__ import annotations

# Signs of plain text.  They are private characters, which received text loses on its way to plain text.
GAP = "\ue000"  # something was left out: it separates two words, and is nothing elsewhere
CELL = "\ue001"  # the border of two cells of a table: a short pause

IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # for a character class

# Character classes of the `regex` library, in its version 1.
SYMBOLS = r"[[\p{So}--[\x00-\u218f\u24b6-\u24e9\u3200-\u33ff]]\p{Me}\U0001f3fb-\U0001f3ff\p{Co}\p{Cn}\p{Cs}\ufffd]"
INVISIBLE = r"[\p{Cf}\ufe00-\ufe0f[\p{Cc}--[\t\n\x0b\x0c\r\x1c-\x1f\x85]]--[\u200c\u200d]]"
STYLED = r"[\U0001d400-\U0001d7ff\u24b6-\u24e9\ufb00-\ufb06０-９Ａ-Ｚａ-ｚ]"  # letters and digits of another look
BREAKS = r"[\n\x0b\x0c\x1c-\x1f\x85\u2028\u2029]"
JOINERS = "\u200c\u200d"  # orthography behind letters of Persian and Indic scripts, glue between emoji elsewhere


def is_speech(character: str) -> bool:
    """Whether the character is a letter, a digit or another number: something that makes a sound."""
    return character.isalnum()
