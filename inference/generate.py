"""Offline generation: whole utterances, without stages.  The engine's frames equal these."""

from __future__ import annotations

import numpy as np

from inference.messages import Sampling
from inference.runner import ARRunner


def generate(
    runner: ARRunner,
    prompts: list[np.ndarray],
    samplings: list[Sampling],
    segment_indices: list[int] | None = None,
) -> list[np.ndarray]:
    """Speak packed prompts [Q + 1, P], at most `runner.width` at once, one slot each -> codes uint16 [Q, T] of each.

    An utterance ends with the end token, after `max_new_tokens` frames, or where its slot is full.
    """
    indices = segment_indices or [0] * len(prompts)
    sequences = [
        runner.sequence(slot, packed, 0, sampling, index)
        for slot, (packed, sampling, index) in enumerate(zip(prompts, samplings, indices, strict=True))
    ]
    running = [sequence for sequence in sequences if runner.room(sequence)]
    while running:
        ended = runner.step(running)
        running = [sequence for sequence, end in zip(running, ended, strict=True) if not end and runner.room(sequence)]
    empty = np.zeros((runner.books, 0), dtype=np.uint16)
    return [np.stack(sequence.frames, axis=1) if sequence.frames else empty for sequence in sequences]
