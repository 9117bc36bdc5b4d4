"""Cuts text into speakable segments while it arrives.

Policy: the first segment ends at the first clause of some length, so that speech begins early; later ones are whole
sentences of at most about 150 characters.  Where text comes so slowly that the listener would have heard all before
the sentence is complete, a segment ends at a clause as well.  Words are only cut by `flush`, or where one is longer
than a whole segment.

Pure: no clock (times are given), no I/O.  Text that arrives at one time gives the same segments however it was split
into messages.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gateway.text.borders import Mark, Rank, count_ideographs, next_mark, word_ends
from gateway.text.characters import is_speech
from gateway.text.held import HeldText, Piece
from gateway.text.markup import Markup, Verbatim
from gateway.text.spoken import spoken, verbatim

Granularity = Literal["clause", "sentence", "none"]
Preparation = Literal["full", "markup", "none"]

_LETTERS_PER_SECOND = 14.5  # of speech, rather fast: who is thought to have heard all too late waits in silence
_LETTERS_PER_IDEOGRAPH = 4
_MIN_LETTERS = 10  # shortest segment: shorter ones sound clipped, and are over before the next one is made
_MIN_LETTERS_FIRST = 4  # but the first one is waited for: "Well," is said at once
_MIN_LETTERS_OF_A_VOICE = 25  # 2 s
_MIN_WORDS_ON_EXPIRY = 3
_MOST_COMBINED = 16  # marks above and below one letter: a word of nothing but such marks may be cut anywhere
_LEAD_S = 0.8  # the next segment is wanted this long before the listener has heard all: it has to be made first


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the received text, verbatim, and what the model is given for it: "" if there is nothing to speak."""

    text: str
    spoken: str


class Segmenter:
    """Segments of one context; see the module for the policy.

    `granularity`: "clause" as above, "sentence" never ends at a clause, "none" cuts for size only; all cut a piece that
    exceeds `max_characters` at the best place.  `first_needs_sentence`: the first segment is a sentence or at least 2 s
    of speech, enough to serve as the reference of those behind it.  `language`: by whose rules the text is cut and its
    signs are read out, a code such as "en", None if it is not known.  `preparation`: "full" takes markup out and reads
    signs out, "markup" does not, "none" gives the model the text as it is.
    """

    def __init__(
        self,
        granularity: Granularity,
        max_buffer_delay_s: float | None = None,
        first_needs_sentence: bool = False,
        max_characters: int = 150,
        language: str | None = "en",
        preparation: Preparation = "full",
    ) -> None:
        self._granularity = granularity
        self._delay = max_buffer_delay_s
        self._needs_sentence = first_needs_sentence
        self._max = max_characters
        self._language = language or "en"
        self._reader = Verbatim() if preparation == "none" else Markup()
        self._preparation = preparation
        self._read_in = language if preparation == "full" else None
        self._held = HeldText()
        self._since: float | None = None  # arrival of the oldest speakable character held back
        self._expired = False  # the delay has run out, but there were too few words
        self._now = 0.0
        self._dry_at: float | None = None  # when the listener has heard all, by estimate; None: nothing to hear yet
        self._start_segment()

    @property
    def buffered(self) -> int:
        """Received characters held back."""
        return self._held.raw_length + self._reader.waiting

    @property
    def deadline(self) -> float | None:
        """When to call `expire`; None if the text held back may wait for more."""
        deadlines = []
        if self._delay is not None and self._since is not None and not self._expired:
            deadlines.append(self._since + self._delay)
        if self._granularity == "clause" and self._dry_at is not None and self._borders[Rank.CLAUSE]:
            deadlines.append(self._dry_at - _LEAD_S)
        return min(deadlines, default=None)

    def push(self, text: str, now: float) -> list[Segment]:
        """Take the next characters at time `now`; returns the segments that are ready."""
        self._now = now
        return [*self._segments_of(self._reader.push(text)), *self._take_overdue_words()]

    def flush(self) -> list[Segment]:
        """Everything held back, half words too; what follows starts anew."""
        segments = self._segments_of(self._reader.finish())
        if self._held.raw_length:
            segments.append(self._take(len(self._held.plain)))
        self._dry_at = None
        return segments

    def expire(self, now: float) -> list[Segment]:
        """What has waited long enough at time `now`: a clause for a listener who has heard almost all, or, after
        `max_buffer_delay_s`, the complete words if there are at least three."""
        self._now = now
        return self._take_ready() + self._take_overdue_words()

    def _segments_of(self, pieces: Iterable[Piece]) -> list[Segment]:
        """Hold what was read; returns the segments that are ready then."""
        segments = []
        for raw, plain in pieces:
            if raw != plain:
                self._held.append(Piece(raw, plain))
                segments += self._take_ready()
                continue
            for start in range(0, len(raw), self._max):  # looking ahead in a long message would cost its square
                part = raw[start : start + self._max]
                self._held.append(Piece(part, part))
                segments += self._take_ready()
        return segments

    def _spoken(self, plain: str) -> str:
        return verbatim(plain) if self._preparation == "none" else spoken(plain, self._read_in)

    def _start_segment(self) -> None:
        """Forget what was found out about the text held back."""
        self._scanned = 0  # marks before this position are decided
        self._scanned_letters = 0  # how much speech there is before it
        self._silent = 0  # there is no speech before this position, as long as `_since` is None
        self._borders = {Rank.CLAUSE: 0, Rank.SENTENCE: 0}  # the last ones that were not used
        self._since = None
        self._expired = False

    def _take(self, length: int) -> Segment:
        """Cut off a segment of `length` characters of plain text."""
        text, plain = self._held.take(length)
        segment = Segment(text, self._spoken(plain))
        if segment.spoken:
            self._needs_sentence = False
            self._dry_at = max(self._dry_at or self._now, self._now) + _letters(plain) / _LETTERS_PER_SECOND
        self._start_segment()
        return segment

    def _take_ready(self) -> list[Segment]:
        """Cut off all segments that are certain."""
        segments = []
        while (cut := self._next_cut()) is not None:
            segments.append(self._take(cut))
        return segments

    def _take_overdue_words(self) -> list[Segment]:
        """Cut off the complete words if the delay has run out and there are at least three."""
        self._note_arrival()
        if self._delay is None or self._since is None or self._now < self._since + self._delay:
            return []
        ends = word_ends(self._held.plain)
        self._expired = len(ends) < _MIN_WORDS_ON_EXPIRY
        if self._expired:
            return []
        segment = self._take(ends[-1])
        self._note_arrival()
        return [segment]

    def _note_arrival(self) -> None:
        """Start the delay of speech that is held back."""
        if self._since is None:
            if any(map(is_speech, self._held.plain[self._silent :])):
                self._since = self._now
            self._silent = len(self._held.plain)

    def _next_cut(self) -> int | None:
        """Where the next segment ends, None while that is not certain."""
        if self._wants_clause and self._borders[Rank.CLAUSE]:
            return self._borders[Rank.CLAUSE]
        while True:
            mark = next_mark(self._held.plain, self._scanned, self._language)
            reached = mark.start if mark else len(self._held.plain)
            if reached > self._max:
                return self._best_cut()
            if mark is not None and self._is_wanted(mark):
                return mark.cut
            if mark is None or not mark.final:
                self._scan_to(reached)
                return None
            if self._is_worthwhile(mark):
                self._borders[mark.rank] = mark.cut
            self._scan_to(mark.end)

    def _scan_to(self, position: int) -> None:
        """Marks before it are decided.  Each letter is counted once, however many marks there are."""
        self._scanned_letters += _letters(self._held.plain[self._scanned : position])
        self._scanned = position

    def _is_wanted(self, mark: Mark) -> bool:
        """Whether a segment is to end at this mark; if so, it is also wanted at any higher rank."""
        if self._granularity == "none" or (mark.rank == Rank.CLAUSE and not self._wants_clause):
            return False
        return self._is_worthwhile(mark)

    def _is_worthwhile(self, mark: Mark) -> bool:
        """Whether enough speech ends at this mark."""
        if mark.rank == Rank.NONE:
            return False
        if self._needs_sentence and mark.rank == Rank.CLAUSE:
            least = _MIN_LETTERS_OF_A_VOICE
        else:
            least = _MIN_LETTERS_FIRST if self._dry_at is None else _MIN_LETTERS
        return self._scanned_letters + _letters(self._held.plain[self._scanned : mark.cut]) >= least

    @property
    def _wants_clause(self) -> bool:
        """Whether the listener cannot wait for a whole sentence."""
        return self._granularity == "clause" and (self._dry_at is None or self._now >= self._dry_at - _LEAD_S)

    def _best_cut(self) -> int:
        """The best place for a cut within `max_characters`."""
        for rank in (Rank.SENTENCE, Rank.CLAUSE):
            if self._borders[rank] > self._max // 3:
                return self._borders[rank]
        if ends := word_ends(self._held.plain[: self._max + 1]):
            return ends[-1]
        places = range(self._max, max(0, self._max - _MOST_COMBINED), -1)
        return next((cut for cut in places if unicodedata.category(self._held.plain[cut])[0] != "M"), self._max)


def _letters(text: str) -> int:
    """How much speech `text` is, in letters of an alphabet."""
    return sum(map(is_speech, text)) + (_LETTERS_PER_IDEOGRAPH - 1) * count_ideographs(text)
