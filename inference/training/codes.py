"""Codes by construction: log-mel frames -> principal components -> residual k-means.  Nothing is learned by gradient.

Shapes: T frames, D = 320 mel values a frame, P principal components, Q codebooks, K entries.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from inference.training.mel import log_mel_frames

COMPONENTS, BOOKS, ENTRIES = 96, 10, 1024


@dataclass(frozen=True, eq=False)
class Codes:
    """`mean` [D], `basis` [D, P] with orthonormal columns, `books` [Q, K, P], all float32."""

    mean: np.ndarray
    basis: np.ndarray
    books: np.ndarray

    @staticmethod
    def load(path: Path) -> Codes:
        with np.load(path) as file:
            return Codes(file["mean"], file["basis"], file["books"])

    def save(self, path: Path) -> None:
        np.savez(path, mean=self.mean, basis=self.basis, books=self.books)

    def components(self, wave: np.ndarray) -> np.ndarray:
        """wave float32 [T * 2048] -> principal components float32 [T, P]."""
        return (log_mel_frames(wave) - self.mean) @ self.basis

    def encode(self, components: np.ndarray) -> np.ndarray:
        """Components [T, P] -> codes uint16 [T, Q]: in every book the entry nearest to what the books before left."""
        residual, codes = components.copy(), np.empty((len(components), len(self.books)), np.uint16)
        for index, book in enumerate(self.books):
            codes[:, index] = np.argmin((book**2).sum(1) - 2 * residual @ book.T, axis=1)
            residual -= book[codes[:, index]]
        return codes

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Codes [T, Q] -> the sum of their entries, components float32 [T, P]."""
        return sum(book[codes[:, index]] for index, book in enumerate(self.books))


def build(frames: Tensor, seed: int = 0, entries: int = ENTRIES) -> Codes:
    """Log-mel frames [N, D] of some hours of speech -> the codes that describe them."""
    torch.manual_seed(seed)
    mean = frames.mean(0)
    basis = torch.pca_lowrank(frames - mean, q=COMPONENTS, niter=4)[2]
    residual = (frames - mean) @ basis
    total, books = float(residual.square().sum()), []
    for index in range(BOOKS):
        books.append(_k_means(residual, entries))
        residual = residual - books[-1][_nearest(residual, books[-1])]
        print(f"book {index}: {100 * float(residual.square().sum()) / total:.2f} % of the variance left", flush=True)
    return Codes(mean.cpu().numpy(), basis.cpu().numpy(), torch.stack(books).cpu().numpy())


def _nearest(x: Tensor, book: Tensor) -> Tensor:
    """Index of each row's nearest entry, [N]; by pieces, since [N, K] distances would not fit."""
    half = book.square().sum(1) / 2
    return torch.cat([(half - piece @ book.T).argmin(1) for piece in x.split(1 << 16)])


def _k_means(x: Tensor, size: int, rounds: int = 12) -> Tensor:
    """Centres [size, P] of x [N, P]; an empty cluster starts anew at a random row."""
    centres = x[torch.randperm(len(x), device=x.device)[:size]].clone()
    for _ in range(rounds):
        nearest = _nearest(x, centres)
        count = torch.bincount(nearest, minlength=size)[:, None]
        mean = torch.zeros_like(centres).index_add_(0, nearest, x) / count.clamp_min(1)
        centres = torch.where(count > 0, mean, x[torch.randint(len(x), (size,), device=x.device)])
    return centres


def main() -> None:
    """Build the codes from the audio of shards that `teacher.py` wrote without codes."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("shards", type=Path, help="folder of *.npz shards with audio")
    parser.add_argument("output", type=Path, help="file for the codes (.npz)")
    parser.add_argument("--frames", type=int, default=400_000, help="frames to use, chosen at random")
    arguments = parser.parse_args()
    mels = []
    for path in sorted(arguments.shards.glob("*.npz")):
        with np.load(path) as shard:
            mels.append(log_mel_frames(shard["audio"].astype(np.float32) / 32767))
    frames = torch.from_numpy(np.concatenate(mels))
    frames = frames[torch.randperm(len(frames))[: arguments.frames]]
    build(frames.cuda() if torch.cuda.is_available() else frames).save(arguments.output)


if __name__ == "__main__":
    main()
