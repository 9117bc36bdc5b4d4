"""Texts through the gateway's preparation and segmentation, however they were cut into messages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from gateway.text.markup import Markup
from gateway.text.segmenter import Segment, Segmenter
from gateway.text.spoken import spoken

AWKWARD: dict[str, list[str]] = json.loads((Path(__file__).parent / "data" / "awkward_texts.json").read_text("utf-8"))
AWKWARD_TEXTS = [text for texts in AWKWARD.values() for text in texts]


def segment(messages: Iterable[str], segmenter: Segmenter | None = None) -> list[Segment]:
    """The segments of messages that arrive at once, the rest of the text included."""
    segmenter = segmenter or Segmenter("clause")
    segments = [piece for message in messages for piece in segmenter.push(message, 0.0)]
    return segments + segmenter.flush()


def plain(text: str) -> str:
    """The plain text of a whole text."""
    reader = Markup()
    return "".join(piece.plain for piece in [*reader.push(text), *reader.finish()])


def said(text: str, read_in: str | None = None) -> str:
    """What the model would be given for a whole text, were it one segment."""
    return spoken(plain(text), read_in)
