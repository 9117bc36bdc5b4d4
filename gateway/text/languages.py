"""Languages that a client may name: texts are cut by their rules."""

from __future__ import annotations

from collections.abc import Iterable

from inference.messages import VoiceInfo

# Codes of ISO 639-1 for which the sentence splitter has rules and abbreviations of its own; and Cantonese, "yue".
LANGUAGES = tuple(
    "am ar bg bn ca cs da de el en es et fa fi fr gu he hi hu hy id it ja kk km kn ko lt lv ml mr my nl no or pa pl pt "
    "ro ru sk sl sv ta te th tr uk ur vi yue zh".split()
)


def known_languages(voices: Iterable[VoiceInfo]) -> tuple[str, ...]:
    """Those, and what the voices speak, in order."""
    return tuple(sorted({voice.language for voice in voices} | set(LANGUAGES)))
