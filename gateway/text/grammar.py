"""What is not plain text, as rules: Markdown, the HTML that occurs in it, control tokens, emoji, invisible characters.

A rule must be decidable within a bounded number of characters, and nothing that it matched may match further only by
way of several more characters: then the shortest text in which it matches, with one more character, is certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import regex

from gateway.text.characters import BREAKS, GAP, IDEOGRAPHS, INVISIBLE, JOINERS, STYLED, SYMBOLS
from gateway.text.readings import (
    PARAGRAPH,
    Line,
    Reading,
    always,
    asterisks,
    bar,
    closing_hashes,
    escaped,
    html_entity,
    html_tag,
    image,
    joiner,
    line_break,
    link_target,
    plain_letter,
    ruling,
    underscores,
    web_address,
)
from gateway.text.web_addresses import ADDRESS, TRAILING, said

_ATTRIBUTE = r"""\s{1,9}[\w:-]{1,30}=(?:"[^"<>]{0,500}"|'[^'<>]{0,500}'|[^\s<>"'/]{1,99})"""


@dataclass(frozen=True, slots=True)
class Rule:
    """`read` gives the plain text for a match, None if the rule does not apply.  `closed`: no further text changes the
    match.  `trim`: characters at the end of a match that do not belong to it."""

    pattern: regex.Pattern
    read: Reading
    kind: Literal["heading", "table"] | None = None
    starts_line: bool | None = False  # None: as before
    closed: bool = False
    trim: str = ""

    def could(self, text: str, position: int) -> bool:
        """Whether the pattern could match once there is more text."""
        return self.pattern.match(text, position, partial=True) is not None

    def enter(self, line: Line) -> None:
        """Set the line's state behind a match."""
        line.kind = self.kind or line.kind
        if self.starts_line is not None:
            line.at_start = self.starts_line


def _rule(pattern: str, read: Reading | str, **more: object) -> Rule:
    return Rule(regex.compile(pattern, regex.VERSION1), always(read) if isinstance(read, str) else read, **more)


_SYMBOL_RULE = _rule(SYMBOLS, GAP, starts_line=None, closed=True)
_INVISIBLE_RULE = _rule(INVISIBLE, "", starts_line=None, closed=True)
_OTHERS = (_SYMBOL_RULE, _INVISIBLE_RULE, _rule(STYLED, plain_letter, closed=True))

# By the first character, in the order in which they are tried: at the start of a line, and anywhere.
_LINE_RULES: dict[str, tuple[Rule, ...]] = {}
_INLINE_RULES: dict[str, tuple[Rule, ...]] = {}


def _add(rules: dict[str, tuple[Rule, ...]], first: str, *added: Rule) -> None:
    for character in first:
        rules[character] = rules.get(character, ()) + added


_add(_LINE_RULES, "`~", _rule(r"(?:`{3,16}|~{3,16})[^`\n]{0,64}(?=\n|\Z)", PARAGRAPH))
_add(_LINE_RULES, "-*_=", _rule(r"([-*_=])(?:[ \t]{0,4}+\1){2,40}+[ \t]{0,16}(?=\n|\Z)", PARAGRAPH))
_add(_LINE_RULES, "-*+•◦▪‣", _rule(r"[-*+•◦▪‣](?:[ \t]|(?=\n|\Z))", PARAGRAPH, starts_line=True))
_add(_LINE_RULES, "0123456789", _rule(r"\d{1,3}[.)][ \t]", lambda match, line: PARAGRAPH + match[0]))
_add(_LINE_RULES, "#", _rule(r"#{1,6}[ \t]", PARAGRAPH, kind="heading"))
_add(_LINE_RULES, ">", _rule(r">{1,8}[ \t]?", "", starts_line=True))
_add(_LINE_RULES, "[", _rule(r"\[[ xX]\](?=[ \t])", ""))
_add(_LINE_RULES, ":-", _rule(r":?-{3,80}:?[ \t]{0,16}(?=\|)", "", kind="table"))
_add(_LINE_RULES, "|", _rule(r"\|", "", kind="table", closed=True))

_add(
    _INLINE_RULES,
    "\n\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029",
    _rule(BREAKS, line_break, starts_line=True, closed=True),
)
_add(_INLINE_RULES, "\x1b", _rule(r"\x1b\[[0-9;?]{0,16}[A-Za-z]", "", starts_line=None, closed=True), _INVISIBLE_RULE)
_add(_INLINE_RULES, "\r", _rule(r"\r\n?", line_break, starts_line=True))
_add(_INLINE_RULES, "*", _rule(r"\*{1,16}", asterisks))
_add(_INLINE_RULES, "_", _rule(r"_{1,16}", underscores))
_add(_INLINE_RULES, "`", _rule(r"`{1,16}", ""))
_add(_INLINE_RULES, "~", _rule(r"~{2,16}", ""))
_add(_INLINE_RULES, "#", _rule(r"#{1,6}[ \t]{0,16}(?=\n|\Z)", closing_hashes))
_add(_INLINE_RULES, ":-", _rule(r":?-{1,80}:?[ \t]{0,16}(?=\||\n|\Z)", ruling))
_add(_INLINE_RULES, "-", _rule(r"-{4,80}", GAP))
_add(_INLINE_RULES, "=", _rule(r"={3,80}", GAP))
_add(_INLINE_RULES, "$", _rule(r"\${2,16}", GAP))  # around a formula
_add(_INLINE_RULES, "|", _rule(r"\|", bar))
_add(_INLINE_RULES, "!", _rule(r"!(?=\[)", image))
_add(
    _INLINE_RULES,
    "]",
    _rule(
        r"\]\([ ]?(?P<target><[^<>\n]{0,500}>|(?:[^\s()<>]|\([^\s()]{0,200}\)){0,1000})"
        r"""(?:[ ]{1,3}(?:"[^"\n]{0,200}"|'[^'\n]{0,200}'))?[ ]?\)""",
        link_target,
        closed=True,
    ),
    _rule(r"\]", GAP, closed=True),
)
_add(_INLINE_RULES, "[", _rule(r"\[\^[\w-]{1,32}\]:?", GAP), _rule(r"\[", GAP, closed=True))
_add(
    _INLINE_RULES,
    "<",
    _rule(r"<\|[^|<>\s]{1,64}\|>", GAP, closed=True),
    _rule(r"<!--[^-]{0,300}+(?:-(?!->)[^-]{0,100}+){0,8}-->", GAP, closed=True),
    _rule(
        rf"</?(?P<name>[A-Za-z][A-Za-z0-9-]{{0,15}})(?:{_ATTRIBUTE}){{0,8}}\s?/?>",
        html_tag,
        starts_line=None,
        closed=True,
    ),
    _rule(rf"<(?P<address>{ADDRESS})>", lambda match, line: said(match["address"]), closed=True),
    _rule(r"<(?:mailto:)?([\w.+-]{1,64}@[\w.-]{1,255})>", lambda match, line: match[1], closed=True),
)
_add(
    _INLINE_RULES,
    "&",
    _rule(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});", html_entity, closed=True),
)
_add(_INLINE_RULES, "\\", _rule(r"\\(?=\n)", ""), _rule(r"\\([!-/:-@\[-`{-~])", escaped, closed=True))
_add(_INLINE_RULES, JOINERS, _rule(f"[{JOINERS}]", joiner, starts_line=None, closed=True))
_add(_INLINE_RULES, "hHfFwW", _rule(ADDRESS, web_address, trim=TRAILING))

_SPECIAL = "".join(regex.escape(character) for character in _INLINE_RULES)
_BUT = f"--{SYMBOLS}--{INVISIBLE}--{STYLED}"
_LETTER = rf"[[^\W_]--[{IDEOGRAPHS}]]"
# Text that no rule looks at; a web address begins where a word does.
PLAIN_RUN = regex.compile(rf"(?:(?<={_LETTER})[[^\W_]{_BUT}]++|[[^{_SPECIAL}]{_BUT}])*+", regex.VERSION1)


def rules_for(character: str, line: Line) -> Sequence[Rule]:
    """The rules to try, in order, where `character` stands."""
    inline = _INLINE_RULES.get(character, _OTHERS if character > "\x7e" or character < " " else ())
    return _LINE_RULES.get(character, ()) + inline if line.at_start else inline
