"""How far a training has come: the time that it has spent, its log, and the file from which it goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

_LOG_EVERY_S = 10.0
_SAVE_EVERY_S = 60.0


def falling(spent: float) -> float:
    """Share of the full learning rate when a share of the plan is spent: a cosine to a twentieth."""
    return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, spent)))


class Part(Protocol):
    """Something that is saved: a module, an optimiser, an average."""

    def state_dict(self) -> dict: ...

    def load_state_dict(self, state: dict) -> object: ...


class Progress:
    """`steps` that were made and `spent_s` seconds for them, those of earlier runs included."""

    def __init__(self, file: Path, device: str, **parts: Part):
        """Goes on from the file if it exists: the parts get the states that they had."""
        self.steps, self.spent_s = 0, 0.0
        self._file, self._parts = file, parts
        if file.exists():
            state = torch.load(file, map_location=device, weights_only=True)
            for name, part in parts.items():
                part.load_state_dict(state[name])
            self.steps, self.spent_s = state["steps"], state["spent_s"]

    def save(self) -> None:
        """Everything to go on from; `assemble.py` takes the average."""
        state = {name: part.state_dict() for name, part in self._parts.items()}
        unfinished = self._file.with_suffix(".part")
        torch.save({**state, "steps": self.steps, "spent_s": self.spent_s}, unfinished)
        unfinished.rename(self._file)

    def run(
        self,
        name: str,
        step: Callable[[float], dict[str, Tensor]],
        data: Callable[[], str],
        end: float,
        planned_s: float,
    ) -> None:
        """Make steps until `end` (of `time.monotonic`), then save.

        `step(spent)` gets which share of `planned_s` is spent (more than 1 after it) and returns its losses; `data()`
        says in the log how much there is to learn from.
        """
        last = logged = saved = time.monotonic()
        while (now := time.monotonic()) < end:
            self.spent_s += now - last
            last = now
            losses = step(self.spent_s / planned_s)
            self.steps += 1
            if now - logged > _LOG_EVERY_S:
                shown = " ".join(f"{loss} {value.item():.3f}" for loss, value in losses.items())
                print(f"{name} {self.spent_s:.0f} s step {self.steps} {shown} {data()}", flush=True)
                logged = now
            if now - saved > _SAVE_EVERY_S:
                self.save()
                saved = time.monotonic()
        self.save()
