"""What the language model learns from: all utterances in one pool on the device, and batches gathered from it.

A pool row is what one position of a packed prompt holds: a token and, at a frame, its Q codes.  An example is a chain
of spans of the pool (the parts of a prompt, texts, frames), so a batch is one gather with indices made on the host.

Shapes: R rows of a batch, L positions a row, E examples, Q codebooks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from inference.config import ArkttsConfig
from inference.messages import Reference
from inference.prompt import PromptBuilder
from inference.training.shards import LABELS, VOICES, finished_shards, load_shard

SHORTEST_REFERENCE, LONGEST_REFERENCE = 43, 108
"""Frames of a reference: two to five seconds."""
_FILLED = 0.94
"""Share of a batch's positions that examples take: at this share nearly all of them find a row."""


@dataclass(frozen=True, eq=False)
class Batch:
    """`packed` int64 [R, Q + 1, L]; `positions` int64 [R, L] count from 0 in each example; `segments` int64 [R, L] tell
    the examples of a row apart; `phones` int64 [R, L, LABELS], meaningful at frames."""

    packed: Tensor
    positions: Tensor
    segments: Tensor
    phones: Tensor


@dataclass(frozen=True)
class Span:
    """Rows `start` … `start + length` of the pool."""

    start: int
    length: int


class Corpus:
    """The pool, growing while shards arrive in a folder."""

    def __init__(self, config: ArkttsConfig, prompts: PromptBuilder, capacity: int, device: torch.device | str):
        """`capacity`: rows of the pool."""
        self._config, self._device = config, device
        self._rows = torch.zeros(capacity, config.num_codebooks + 1, dtype=torch.int16, device=device)
        self._phones = torch.zeros(capacity, LABELS, dtype=torch.uint8, device=device)
        self._filled = 0
        self._seen: set[Path] = set()
        # text start, text length, first frame, frames, voice
        self._utterances = np.empty((0, 5), np.int64)
        self._references: dict[int, np.ndarray] = {}
        self._add_template(prompts)

    def __len__(self) -> int:
        return len(self._utterances)

    @property
    def frames(self) -> int:
        """Codec frames of all utterances."""
        return int(self._utterances[:, 3].sum())

    def _add_template(self, prompts: PromptBuilder) -> None:
        """The fixed parts, read off prompts that the real builder makes."""
        frame = np.zeros((self._config.num_codebooks, 1), np.uint16)
        a, b = (prompts.prefix(Reference(text, frame))[0] for text in "ab")
        text_at, frame_at = int(np.flatnonzero(a != b)[0]), int(np.flatnonzero(a >= self._config.semantic_begin_id)[0])
        turn = prompts.build("a")
        self._plain = self._add_tokens(prompts.prefix(None)[0])
        self._head = self._add_tokens(a[:text_at])
        self._speech = self._add_tokens(a[text_at + 1 : frame_at])
        self._user = self._add_tokens(a[frame_at + 1 :])
        self._assistant = self._add_tokens(turn.packed[0, turn.prefix + turn.text_tokens :])
        self._end = self._add_tokens(np.array([self._config.eos_token_id]))
        self._pad = self._add_tokens(np.array([self._config.pad_token_id]))

    def _add_tokens(self, tokens: np.ndarray) -> Span:
        rows = np.zeros((len(tokens), self._rows.shape[1]), np.int16)
        rows[:, 0] = tokens
        return self._add_rows(rows, np.zeros((len(tokens), LABELS), np.uint8))

    def _add_rows(self, rows: np.ndarray, phones: np.ndarray) -> Span:
        span = Span(self._filled, len(rows))
        end = span.start + span.length
        if end > len(self._rows):
            raise ValueError(f"the corpus holds {len(self._rows)} rows, {end} are asked for")
        self._rows[span.start : end] = torch.from_numpy(rows).to(self._device)
        self._phones[span.start : end] = torch.from_numpy(phones).to(self._device)
        self._filled = end
        return span

    def take_new(self, folder: Path, most: int) -> int:
        """Add shards of `folder` that were not there before, at most `most`; returns how many."""
        new = finished_shards(folder, self._seen)[:most]
        for path in new:
            self._add_shard(path)
            self._seen.add(path)
        if new:
            frames, voices = self._utterances[:, 3], self._utterances[:, 4]
            fits = (frames >= SHORTEST_REFERENCE) & (frames <= LONGEST_REFERENCE)
            self._references = {voice: np.flatnonzero(fits & (voices == voice)) for voice in range(len(VOICES))}
        return len(new)

    def _add_shard(self, path: Path) -> None:
        shard = load_shard(path, without=("audio", "texts"))
        lengths, frames = shard["token_counts"], shard["frames"]
        text = self._add_tokens(shard["tokens"])
        codes = shard["codes"].astype(np.int16)
        tokens = codes[:, :1] + np.int16(self._config.semantic_begin_id)
        speech = self._add_rows(np.concatenate((tokens, codes), axis=1), shard["phones"])
        starts = text.start + np.cumsum(lengths) - lengths, speech.start + np.cumsum(frames) - frames
        added = np.stack((starts[0], lengths, starts[1], frames, shard["voices"]), axis=1)
        self._utterances = np.concatenate((self._utterances, added))

    def batch(self, rows: int, length: int, rng: np.random.Generator) -> Batch:
        """A batch of random examples, half of them with a reference, packed into `rows` rows of `length` positions."""
        starts, lengths = self._examples(rows * length // 64, rng)
        kept = np.cumsum(lengths.sum(1)) < _FILLED * rows * length
        starts, lengths = starts[kept], lengths[kept]
        order = _pack(lengths.sum(1), rows, length)
        starts, lengths, example = self._in_order(starts, lengths, order, length)
        index = _ranges(starts, lengths).reshape(rows, length)
        segments = np.repeat(example, lengths).reshape(rows, length)
        begins = np.concatenate((np.ones((rows, 1), bool), segments[:, 1:] != segments[:, :-1]), axis=1)
        at = np.broadcast_to(np.arange(length), (rows, length))
        positions = at - np.maximum.accumulate(np.where(begins, at, 0), axis=1)
        index, segments, positions = self._to_device(np.stack((index, segments, positions)))
        packed = self._rows[index].long().transpose(1, 2)
        return Batch(packed, positions, segments, self._phones[index].long())

    def _to_device(self, array: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(array)
        return tensor.pin_memory().to(self._device, non_blocking=True) if "cuda" in str(self._device) else tensor

    def _examples(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Starts and lengths [E, 8] of the spans of random examples; a span that an example lacks has length 0."""
        chosen = self._utterances[rng.integers(len(self._utterances), size=count)]
        reference = np.zeros_like(chosen)
        for voice, members in self._references.items():
            rows = np.flatnonzero((chosen[:, 4] == voice) & (rng.random(count) < 0.5))
            if len(members):
                reference[rows] = self._utterances[rng.choice(members, len(rows))]
        with_reference = reference[:, 3] > 0

        always = np.ones(count, bool)

        def fixed(span: Span, where: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return np.full(count, span.start), np.where(where, span.length, 0)

        spans = (
            fixed(self._plain, ~with_reference),
            fixed(self._head, with_reference),
            (reference[:, 0], reference[:, 1]),
            fixed(self._speech, with_reference),
            (reference[:, 2], reference[:, 3]),
            fixed(self._user, with_reference),
            (chosen[:, 0], chosen[:, 1]),
            fixed(self._assistant, always),
            (chosen[:, 2], chosen[:, 3]),
            fixed(self._end, always),
        )
        return np.stack([start for start, _ in spans], axis=1), np.stack([length for _, length in spans], axis=1)

    def _in_order(self, starts: np.ndarray, lengths: np.ndarray, order: list[list[int]], length: int):
        """Spans of the packed examples, row after row, each row filled up with padding; and each span's example."""
        all_starts, all_lengths, all_examples = [], [], []
        parts = starts.shape[1]
        for row in order:
            used = int(lengths[row].sum())
            padding = np.ones(length - used, np.int64)
            all_starts += [starts[row].ravel(), np.full(len(padding), self._pad.start)]
            all_lengths += [lengths[row].ravel(), padding]
            all_examples += [np.repeat(row, parts), np.full(len(padding), -1)]
        return np.concatenate(all_starts), np.concatenate(all_lengths), np.concatenate(all_examples).astype(np.int64)


def _pack(lengths: np.ndarray, rows: int, length: int) -> list[list[int]]:
    """Examples of each row: the longest first, each into the first row with room.  What fits nowhere is left out."""
    room, chosen = np.full(rows, length), [[] for _ in range(rows)]
    for example in np.argsort(-lengths):
        row = int(np.argmax(room >= lengths[example]))
        if room[row] >= lengths[example]:
            room[row] -= lengths[example]
            chosen[row].append(int(example))
    return chosen


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """start, start + 1, … of all spans, joined."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())
