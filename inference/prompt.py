"""From text, and a voice to imitate, to the packed prompt matrix."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from inference.config import ArkttsConfig
from inference.messages import Reference

_SYSTEM = ("<|im_start|>system\n", "convert the provided text to speech", "<|im_end|>\n")
_SYSTEM_REFERENCE = (
    "<|im_start|>system\n",
    "convert the provided text to speech reference to the following:\n\nText:\n",
)
_SPEECH = "\n\nSpeech:\n"
_END = "<|im_end|>\n"
_USER = "<|im_start|>user\n"
_ASSISTANT = "<|im_start|>assistant\n<|voice|>"
_SPEAKER = re.compile(r"<\|speaker:\d+\|>")
_DEFAULT_SPEAKER = "<|speaker:0|>"


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """`packed` int64 [Q + 1, T].  The first `prefix` columns depend on the voice alone; `text_tokens` follow them."""

    packed: np.ndarray
    prefix: int
    text_tokens: int


def clean(text: str) -> str:
    """White space (as `str.split` sees it) at the ends removed, elsewhere one space."""
    return " ".join(text.split())


class PromptBuilder:
    """Tokenizes the parts of a prompt one by one, as the model was trained: a merge across parts would change ids."""

    def __init__(self, tokenizer_file: Path, config: ArkttsConfig):
        self._config = config
        self._template = Tokenizer.from_file(str(tokenizer_file))
        self._plain = Tokenizer.from_file(str(tokenizer_file))
        # What a user writes never becomes a special id, whatever it looks like: it could end the turn.
        self._plain.encode_special_tokens = True

    def build(self, text: str, reference: Reference | None = None) -> Prompt:
        """Raises ValueError for an empty text or a reference that the model cannot take."""
        text = clean(text)
        if not text:
            raise ValueError("text must not be empty")
        prefix = self.prefix(reference)
        spoken = self._tokens(self._plain, text)
        packed = np.concatenate((prefix, self._columns(spoken), self._columns(self._parts(_END, _ASSISTANT))), axis=1)
        return Prompt(packed, prefix.shape[1], len(spoken))

    def prefix(self, reference: Reference | None) -> np.ndarray:
        """The columns before the user's text, int64 [Q + 1, T]: they depend on the voice alone."""
        if reference is None:
            return self._columns(self._parts(*_SYSTEM, _USER))
        text = clean(reference.text)
        if not text:
            raise ValueError("reference_text is required when a reference voice is provided")
        head = self._parts(*_SYSTEM_REFERENCE) + self._reference_text(text) + self._parts(_SPEECH)
        frames = self._frames(np.asarray(reference.codes))
        return np.concatenate((self._columns(head), frames, self._columns(self._parts(_END, _USER))), axis=1)

    def _frames(self, codes: np.ndarray) -> np.ndarray:
        books, size = self._config.num_codebooks, self._config.codebook_size
        if codes.ndim != 2 or codes.shape[0] != books or codes.shape[1] == 0:
            raise ValueError(f"reference codes must have shape [{books}, T>0], got {codes.shape}")
        if codes.min() < 0 or codes.max() >= size:
            raise ValueError(f"reference codes must be in [0, {size - 1}]")
        codes = codes.astype(np.int64)
        return np.concatenate((codes[:1] + self._config.semantic_begin_id, codes))

    def _reference_text(self, text: str) -> list[int]:
        if not _SPEAKER.search(text):
            text = _DEFAULT_SPEAKER + text
        ids: list[int] = []
        start = 0
        for tag in _SPEAKER.finditer(text):
            token = self._template.token_to_id(tag[0])
            if token is None:  # a tag that this tokenizer does not mark is text like any other
                continue
            ids += [*self._tokens(self._plain, text[start : tag.start()]), token]
            start = tag.end()
        return ids + self._tokens(self._plain, text[start:])

    def _parts(self, *parts: str) -> list[int]:
        return [token for part in parts for token in self._tokens(self._template, part)]

    @staticmethod
    def _tokens(tokenizer: Tokenizer, text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids if text else []

    def _columns(self, tokens: list[int]) -> np.ndarray:
        columns = np.zeros((self._config.num_codebooks + 1, len(tokens)), dtype=np.int64)
        columns[0] = tokens
        return columns
