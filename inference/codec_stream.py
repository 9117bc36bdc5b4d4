"""One stream's decode, piece by piece: stateful (exact) or windowed (the published way).

Shapes: Q codebooks, n new frames, F samples a frame.
"""

from __future__ import annotations

import numpy as np
import torch

from inference.codec import Codec
from inference.convolution import History, stack_histories, unstack_history


class StatefulDecoder:
    """Keeps the convolution and attention state of each stream: the pieces joined equal one decode of the whole."""

    pieces = True  # a chunk may be decoded in pieces, for nothing is decoded twice

    def __init__(self, codec: Codec):
        self._codec = codec
        self._device = next(codec.parameters()).device

    def open(self) -> History:
        """The state of a stream that begins."""
        return History()

    def alike(self, state: History) -> bool:
        """Streams decode in one call if this is the same for both: those that begin keep nothing yet."""
        return bool(state.kept)

    @torch.inference_mode()
    def decode(self, states: list[History], codes: np.ndarray) -> np.ndarray:
        """codes uint16 [B, Q, n] of streams that are alike -> samples float32 [B, n * F]; the states move on."""
        history = stack_histories(states) if len(states) > 1 else states[0]
        waveform = self._codec.decode(_to(codes, self._device), history)
        if len(states) > 1:
            unstack_history(history, states, codes.shape[2])
        return waveform.float().cpu().numpy()


class WindowedDecoder:
    """Decodes each chunk anew behind up to `context` frames of what came before, and keeps the last n * F samples."""

    pieces = False

    def __init__(self, codec: Codec, context: int):
        self._codec, self._context = codec, context
        self._device = next(codec.parameters()).device

    def open(self) -> list[np.ndarray]:
        """The state of a stream: its last frames, [Q, at most context], in a list of one."""
        return []

    def alike(self, state: list[np.ndarray]) -> int:
        """Streams with equally long context decode in one call."""
        return state[0].shape[1] if state else 0

    @torch.inference_mode()
    def decode(self, states: list[list[np.ndarray]], codes: np.ndarray) -> np.ndarray:
        """codes uint16 [B, Q, n] -> samples float32 [B, n * F]."""
        joined = np.stack([np.concatenate((*state, new), axis=1) for state, new in zip(states, codes, strict=True)])
        waveform = self._codec.decode(_to(joined, self._device))
        for state, row in zip(states, joined, strict=True):
            state[:] = [row[:, max(0, row.shape[1] - self._context) :]]
        return waveform[:, waveform.shape[1] - codes.shape[2] * self._codec.frame_samples :].float().cpu().numpy()


def _to(codes: np.ndarray, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(codes.astype(np.int64)).to(device)
