"""What the matches of a text's rules stand for, as plain text: None where a rule does not apply after all."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import regex

from gateway.text.characters import CELL, GAP, IDEOGRAPHS, INVISIBLE, JOINERS, SYMBOLS
from gateway.text.web_addresses import TRAILING, said

PARAGRAPH = "\n\n"  # plain text for whatever ends a block: a border, and a pause, like a blank line

_FIRST_JOINING_SCRIPT = "\u0600"
_IDEOGRAPH = regex.compile(f"[{IDEOGRAPHS}]")
_LEFT_OUT = regex.compile(SYMBOLS, regex.VERSION1)
_UNSEEN = regex.compile(f"{INVISIBLE}|[{JOINERS}]", regex.VERSION1)
_TAGS = frozenset(
    "a abbr audio b big center cite code del details em emphasis font h1 h2 h3 h4 h5 h6 i img ins kbd mark phoneme pre "
    "prosody q rb rt ruby s samp say-as small span speak strike strong sub sup time tt u var video voice wbr".split()
)
_BLOCK_TAGS = frozenset(
    "blockquote body br break caption dd div dl dt footer head header hr html li main nav ol p script section style "
    "summary table tbody td tfoot th thead think thinking tr ul h1 h2 h3 h4 h5 h6".split()
)


@dataclass(slots=True)
class Line:
    """What the rules look at beside the text.  `previous`: the last character that was read; `at_start`: only white
    space and marks of blocks precede in the line."""

    previous: str = "\n"
    at_start: bool = True
    kind: Literal["text", "heading", "table"] = "text"


Reading = Callable[[regex.Match, Line], str | None]


def always(plain: str) -> Reading:
    """The same plain text for each match."""
    return lambda match, line: plain


def _is_word(character: str) -> bool:
    return character.isalnum()


def _following(match: regex.Match) -> str:
    return match.string[match.end() : match.end() + 1]


def asterisks(match: regex.Match, line: Line) -> str:
    """A sign in "2 * 3", "a*b" and "2**3"; emphasis elsewhere, also between ideographs."""
    before, after = line.previous, _following(match)
    if len(match[0]) == 1 and before.isspace() and (after.isspace() or not after):
        return match[0]
    if not (_is_word(before) and _is_word(after)) or _IDEOGRAPH.match(before) or _IDEOGRAPH.match(after):
        return ""
    return match[0] if len(match[0]) == 1 or before.isdigit() else ""


def underscores(match: regex.Match, line: Line) -> str:
    """Part of a word inside snake_case, emphasis elsewhere."""
    return match[0] if _is_word(line.previous) and _is_word(_following(match)) else ""


def line_break(match: regex.Match, line: Line) -> str:
    """The line's end: of a heading and of a row of a table also the block's."""
    plain = "\n" if line.kind == "text" else PARAGRAPH
    line.kind = "text"
    return plain


def link_target(match: regex.Match, line: Line) -> str | None:
    """Nothing, if it looks like one: `handlers[0](event)` has none."""
    return GAP if not match["target"] or regex.search(r"[./:#?@<]", match["target"]) else None


def image(match: regex.Match, line: Line) -> str | None:
    """The mark before an image's brackets: "Wow![1]" has none."""
    return None if _is_word(line.previous) else ""


def closing_hashes(match: regex.Match, line: Line) -> str | None:
    """Marks at the end of a heading."""
    return "" if line.kind == "heading" else None


def bar(match: regex.Match, line: Line) -> str | None:
    """The border of two cells, in a row that begins with one, or with space around it."""
    if line.kind == "table":
        return CELL
    after = _following(match)
    return CELL if line.previous.isspace() and (after.isspace() or not after) else None


def ruling(match: regex.Match, line: Line) -> str | None:
    """The line below a table's head."""
    return "" if line.kind == "table" and line.previous in "| \t" else None


def html_tag(match: regex.Match, line: Line) -> str | None:
    """Known tags: of blocks a border, of what is inside a line nothing."""
    name = match["name"].lower()
    if name in _BLOCK_TAGS:
        return "\n" if name in ("br", "break") else PARAGRAPH
    return "" if name in _TAGS else None


def html_entity(match: regex.Match, line: Line) -> str | None:
    """The character that an entity names, if it may stand in plain text."""
    plain = html.unescape(match[0])
    if plain == match[0]:
        return None
    return _LEFT_OUT.sub(GAP, _UNSEEN.sub("", plain))


def escaped(match: regex.Match, line: Line) -> str:
    """The sign behind a backslash."""
    return GAP if match[1] in "[]" else match[1]


def joiner(match: regex.Match, line: Line) -> str:
    """A joiner behind a letter of a script that has them, none elsewhere."""
    joins = line.previous >= _FIRST_JOINING_SCRIPT and unicodedata.category(line.previous)[0] in "LM"
    return match[0] if joins else ""


def plain_letter(match: regex.Match, line: Line) -> str:
    """The usual form of a letter or digit of another look."""
    return unicodedata.normalize("NFKC", match[0])


def web_address(match: regex.Match, line: Line) -> str | None:
    """What is said of an address that begins where a word does."""
    inside_word = _is_word(line.previous) and not _IDEOGRAPH.match(line.previous)
    return None if inside_word else said(match[0].rstrip(TRAILING))
