"""Utterances and the files that hold them: what the teacher's workers hand to the trainings.

Shapes: T frames of an utterance, F frames of a whole shard, Q codebooks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inference.prompt import PromptBuilder
from inference.training.codes import Codes

LABELS = 2
"""Phone labels a codec frame."""


@dataclass(frozen=True)
class Voice:
    """`rate`: factor on the teacher's sampling rate; `pitch`: factor on its f0 before that; `share` of the data."""

    rate: float
    pitch: float
    share: float


VOICES = {
    "aria": Voice(1.0, 1.0, 0.34),
    "clara": Voice(0.91, 0.97, 0.20),
    "milo": Voice(0.83, 0.78, 0.26),
    "juno": Voice(1.11, 1.06, 0.20),
}


@dataclass(frozen=True, eq=False)
class Utterance:
    """`audio` float32 [T * 2048] at 44.1 kHz; `phones` uint8 [T, LABELS], the teacher's phone ids, 0 for silence."""

    text: str
    voice: str
    audio: np.ndarray
    phones: np.ndarray


@dataclass(frozen=True, eq=False)
class Coding:
    """How utterances become what the model sees: frames by `codes`, texts by `prompts`."""

    codes: Codes
    prompts: PromptBuilder

    def arrays(self, utterances: list[Utterance]) -> dict[str, np.ndarray]:
        """`codes` uint16 [F, Q] of all frames, `tokens` int16 of all texts and `token_counts` of each."""
        tokens = [self._tokens(u.text) for u in utterances]
        return {
            "codes": np.concatenate([self.codes.encode(self.codes.components(u.audio)) for u in utterances]),
            "tokens": np.concatenate(tokens).astype(np.int16),
            "token_counts": np.array([len(text) for text in tokens]),
        }

    def _tokens(self, text: str) -> np.ndarray:
        prompt = self.prompts.build(text)
        return prompt.packed[0, prompt.prefix : prompt.prefix + prompt.text_tokens]


def save_shard(path: Path, utterances: list[Utterance], coding: Coding | None, with_audio: bool) -> None:
    """Utterances to one file; `load_shard` tells what it holds.  Readers look for files while workers write them."""
    voices = list(VOICES)
    arrays = {
        "texts": np.frombuffer("\n".join(u.text for u in utterances).encode(), np.uint8),
        "voices": np.array([voices.index(u.voice) for u in utterances]),
        "frames": np.array([len(u.phones) for u in utterances]),
        "phones": np.concatenate([u.phones for u in utterances]),
    }
    if coding is not None:
        arrays |= coding.arrays(utterances)
    if with_audio:
        arrays["audio"] = (np.concatenate([u.audio for u in utterances]) * 32767).astype(np.int16)
    part = path.with_suffix(".part.npz")
    np.savez(part, **arrays)
    part.rename(path)


def load_shard(path: Path, without: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """`texts` (UTF-8, a line each), `voices` (numbers) and `frames` of each utterance, `phones` uint8 [F, LABELS], what
    `Coding.arrays` makes, and in some shards `audio` int16 [F * 2048]; all but the names in `without`."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files if name not in without}


def has_audio(path: Path) -> bool:
    """Whether a shard holds audio; nothing of it is read."""
    with np.load(path) as file:
        return "audio" in file.files


def finished_shards(folder: Path, seen: set[Path]) -> list[Path]:
    """Shards of `folder` that are not among those `seen`."""
    return sorted(path for path in folder.glob("*.npz") if path not in seen and ".part" not in path.name)
