"""Runs the dual-AR model over KV slots: prefill, and the step that makes one frame for up to `width` sequences.

Shapes: B = width rows of a step, P positions, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from inference.dual_ar import DualAR
from inference.flat import FlatAttend
from inference.frame import Frame
from inference.kv import KVSlots
from inference.messages import Sampling
from inference.noise import FrameNoise
from inference.sampling import FEW
from inference.sequence import Sequence, StepResult
from inference.slots import SlotState


class ARRunner:
    """Owns the KV slots' memory.  Not thread-safe; one step at a time.

    Every step has the same shape, `width` rows, whatever is running: a row's numbers do not depend on its neighbours.
    """

    spare_slots = 0  # KV slots behind those of sequences

    def __init__(
        self,
        model: DualAR,
        width: int,
        slots: int,
        *,
        max_len: int | None = None,
        ignore_eos: bool = False,
        draw: Callable[[Sequence], np.ndarray] | None = None,
    ):
        """`max_len`: positions of a slot, the checkpoint's max_seq_len by default.  `ignore_eos`: the end token
        is never chosen, for measuring with random weights.  `draw`: the uniform noise of a sequence's next frame, by
        default a function of seed, segment and step."""
        config = model.config
        self.model, self.width, self.slots = model, width, slots
        self.max_len, self.books = max_len or config.max_seq_len, config.num_codebooks
        self.device = model.norm.weight.device
        self.noise = FrameNoise(config.codebook_size + 1, self.books, config.codebook_size)
        self._draw = draw or self._drawn
        self.kv = KVSlots(config, slots + self.spare_slots, self.max_len, model.norm.weight)
        self.state = SlotState(config, slots, self.device)
        self.frame = Frame(model, width, self.state, self.noise, ignore_eos)
        self._noise = np.ones((width, self.noise.size), dtype=np.float32)  # of a step; rows without a sequence keep it

    def sequence(self, slot: int, packed: np.ndarray, length: int, sampling: Sampling, segment_index: int) -> Sequence:
        """Prefill what of `packed` [Q + 1, P] the slot does not hold yet (`length` positions), all but the last column,
        which is the first step's input."""
        self.check_length(packed)
        self.prefill(slot, packed[:, length:-1], length)
        last = packed.shape[1] - 1
        self.state.open(slot, packed[:, last], last, sampling, segment_index)
        return Sequence(slot, last, sampling, segment_index)

    def check_length(self, packed: np.ndarray) -> None:
        """Raises ValueError if no frame would fit behind the prompt `packed` [Q + 1, P]."""
        if packed.shape[1] >= self.max_len:
            raise ValueError(
                f"the prompt takes {packed.shape[1]} of {self.max_len} positions, which leaves none to speak"
            )

    @torch.inference_mode()
    def prefill(self, slot: int, packed: np.ndarray, start: int) -> None:
        """Write keys and values of the columns `packed` [Q + 1, P] at positions start, start + 1, … of a slot."""
        if packed.shape[1] == 0:
            return
        end = start + packed.shape[1]
        columns = torch.from_numpy(np.ascontiguousarray(packed))[None].to(self.device)
        positions = torch.arange(start, end, device=self.device)[None]
        self.model.slow(self.model.embed(columns), positions, self.kv.attend_prompt(slot, start, end))

    def room(self, sequence: Sequence) -> bool:
        """Whether another step may be launched: prompt and frames together fill at most the slot, and the sequence has
        asked for more frames."""
        return sequence.step < sequence.sampling.max_new_tokens and sequence.length + 1 < self.max_len

    def step(self, sequences: list[Sequence]) -> list[bool]:
        """One frame for each of at most `width` sequences, put to its `frames`; True where it found its end instead."""
        frames, ended = self.launch(sequences).read()
        for sequence, frame, end in zip(sequences, frames, ended, strict=True):
            if not end:
                sequence.frames.append(frame)
        return ended

    @torch.inference_mode()
    def launch(self, sequences: list[Sequence]) -> StepResult:
        """Start one step of at most `width` sequences.  It needs no result of the step before on the host.

        A sequence may be in it whose end is in a result that nobody has read: what it makes then has no meaning.
        """
        slots = [sequence.slot for sequence in sequences]
        rows = torch.tensor(slots + [self.state.padding] * (self.width - len(slots)), device=self.device)
        penalised = any(sequence.sampling.repetition_penalty != 1.0 for sequence in sequences)
        attend = self.attend(sequences, rows)
        made = self.frame(rows, self._draws(sequences), attend, self._candidates(sequences), penalised)
        return self._launched(sequences, made)

    def _launched(
        self, sequences: list[Sequence], made: Tensor, arrive: Callable[[], object] | None = None
    ) -> StepResult:
        for sequence in sequences:
            sequence.length += 1
            sequence.step += 1
        return StepResult(tuple(sequences), made, self.model.config.codebook_size, arrive)

    def attend(self, sequences: list[Sequence], rows: Tensor) -> FlatAttend:
        """What the slow AR's queries see in the next step of the sequences, which are the first of the slots `rows`."""
        slots, ends = [sequence.slot for sequence in sequences], [sequence.length + 1 for sequence in sequences]
        own = rows[: len(slots)]
        return self.kv.attend_own(slots, ends, self.kv.places(own, self.state.lengths[own]), self.width)

    def _candidates(self, sequences: list[Sequence]) -> int:
        """Nearly always few suffice; sorting all takes far longer."""
        few = all(sequence.sampling.top_k <= FEW for sequence in sequences)
        return FEW if few else self.model.config.codebook_size + 1

    def _draws(self, sequences: list[Sequence]) -> Tensor:
        """Uniform noise [B, size]."""
        for row, sequence in enumerate(sequences):
            self._noise[row] = self._draw(sequence)
        return torch.from_numpy(self._noise).to(self.device)

    def _drawn(self, sequence: Sequence) -> np.ndarray:
        return self.noise.draw(sequence.sampling.seed, sequence.segment_index, sequence.step)
