"""Reads Markdown while it arrives: a streaming front that hands on plain text as soon as it is certain.

At each position the rules of `grammar` are tried in turn.  A rule that more text could still make fit is waited for;
every rule is bounded, and so is the wait.  What is decided therefore depends on the text alone, never on how it was cut
into messages.  (Parsers of whole documents, such as markdown-it, cannot do this: one asterisk may wait for its partner
until the end.  The tests compare with one.)
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.text.grammar import PLAIN_RUN, Line, Rule, rules_for
from gateway.text.held import Piece


class Verbatim:
    """The front for text that is not to be prepared: plain text is the received text."""

    waiting = 0

    def push(self, text: str) -> Iterator[Piece]:
        """The text, as one piece."""
        yield Piece(text, text)

    def finish(self) -> Iterator[Piece]:
        """Nothing: no text waits."""
        yield from ()


class Markup:
    """One context's text, read from left to right.  Each character is in exactly one piece."""

    def __init__(self) -> None:
        self._text = ""  # received and not yet decided
        self._line = Line()

    @property
    def waiting(self) -> int:
        """Characters that are not decided yet."""
        return len(self._text)

    def push(self, text: str) -> Iterator[Piece]:
        """Take the next characters; yields what has become certain, to be consumed before the next call."""
        self._text += text
        return self._read(final=False)

    def finish(self) -> Iterator[Piece]:
        """What is left, read as if nothing followed."""
        return self._read(final=True)

    def _read(self, final: bool) -> Iterator[Piece]:
        same = position = 0  # from `same` on the text stands for itself
        while position < len(self._text):
            taken = self._next(position, final)
            if taken is None:
                break
            end, plain = taken
            raw = self._text[position:end]
            self._line.previous = raw[-1]
            if raw != plain:
                yield from self._verbatim(same, position)
                yield Piece(raw, plain)
                same = end
            position = end
        yield from self._verbatim(same, position)
        self._text = self._text[position:]

    def _verbatim(self, start: int, end: int) -> Iterator[Piece]:
        """Text that stands for itself, as one piece if there is any."""
        if start < end:
            yield Piece(self._text[start:end], self._text[start:end])

    def _next(self, position: int, final: bool) -> tuple[int, str] | None:
        """(end, plain text) of what stands at `position`, None while that is not certain."""
        text, line = self._text, self._line
        for rule in rules_for(text[position], line):
            match = rule.pattern.match(text, position)
            if not final and (match.end() == len(text) and not rule.closed if match else rule.could(text, position)):
                return None
            if match and (plain := rule.read(match, line)) is not None:
                end = self._trimmed(rule, position, match.end())
                rule.enter(line)
                return end, plain
        end = position + 1
        if not text[position].isspace():
            line.at_start = False
            end = PLAIN_RUN.match(text, end).end()
        return end, text[position:end]

    def _trimmed(self, rule: Rule, position: int, end: int) -> int:
        """Where the rule's match ends without the characters that belong to the text behind it."""
        return position + len(self._text[position:end].rstrip(rule.trim)) if rule.trim else end
