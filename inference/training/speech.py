"""Audio and codes of some hours of speech on the device, to cut crops from.

Shapes: B crops, F frames, Q codebooks.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from inference.training.mel import FRAME, RATE
from inference.training.shards import finished_shards, has_audio, load_shard


class Speech:
    """A pool that grows while shards with audio arrive, until it is full."""

    def __init__(self, codebooks: int, hours: float, device: torch.device | str):
        """`hours`: what the pool holds at most."""
        self._room = int(hours * 3600 * RATE / FRAME)
        self._audio = torch.zeros(self._room, FRAME, dtype=torch.int16, device=device)
        self._codes = torch.zeros(self._room, codebooks, dtype=torch.int16, device=device)
        self._filled = 0
        self._seen: set[Path] = set()
        self._utterances = np.empty((0, 2), np.int64)  # first frame, frames

    @property
    def hours(self) -> float:
        """Speech in the pool."""
        return self._filled * FRAME / RATE / 3600

    def wait(self, shards: Path, end: float, hours: float = 0.05) -> None:
        """Read shards until there are `hours`.  Raises TimeoutError at `end`."""
        while self.hours < hours:
            if not self.take_new(shards, most=100):
                if time.monotonic() > end:
                    raise TimeoutError(f"only {self.hours:.3f} hours of audio arrived in {shards}")
                time.sleep(0.5)

    def take_new(self, folder: Path, most: int) -> int:
        """Add shards with audio that were not there before, at most `most`; returns how many."""
        added = 0
        for path in finished_shards(folder, self._seen):
            if added == most:
                break
            self._seen.add(path)
            if has_audio(path):
                added += self._add(load_shard(path, without=("texts", "tokens", "phones")))
        return added

    def _add(self, shard: dict[str, np.ndarray]) -> bool:
        """False where the shard does not fit any more."""
        frames, start, end = shard["frames"], self._filled, self._filled + len(shard["codes"])
        if end > self._room:
            return False
        self._audio[start:end] = torch.from_numpy(shard["audio"].reshape(-1, FRAME)).to(self._audio.device)
        self._codes[start:end] = torch.from_numpy(shard["codes"].astype(np.int16)).to(self._codes.device)
        self._filled = end
        starts = start + np.cumsum(frames) - frames
        self._utterances = np.concatenate((self._utterances, np.stack((starts, frames), axis=1)))
        return True

    def crops(self, count: int, frames: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """First frame of random crops of `frames` frames, and of their utterances, [count] each.

        A tenth or so begins with its utterance.  Utterances that are shorter than a crop are not used.
        """
        long = self._utterances[self._utterances[:, 1] >= frames]
        begin, length = long[rng.integers(len(long), size=count)].T
        offset = rng.integers(-8, length - frames + 1)
        return begin + np.maximum(0, offset), begin

    def codes_at(self, first: Tensor, frames: int) -> Tensor:
        """Codes int64 [B, F, Q] of `frames` frames from `first` [B] on; beyond the pool's end its last ones."""
        index = first[:, None] + torch.arange(frames, device=first.device)
        return self._codes[index.clamp_max(self._room - 1)].long()

    def audio_at(self, first: Tensor, frames: int) -> Tensor:
        """Samples float32 [B, F * FRAME] from frame `first` [B] on."""
        index = first[:, None] + torch.arange(frames, device=first.device)
        return self._audio[index].flatten(1).float() / 32767
