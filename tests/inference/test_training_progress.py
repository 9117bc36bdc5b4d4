"""A training goes on from where it was."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn

from inference.training.average import Average
from inference.training.progress import Progress, falling


class Training:
    """One weight that learns to be 3."""

    def __init__(self, file) -> None:
        torch.manual_seed(0)
        self.model = nn.Linear(1, 1, bias=False)
        self.average = Average(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 0.1)
        self.progress = Progress(file, "cpu", model=self.model, average=self.average, optimizer=self.optimizer)
        self.spent: list[float] = []

    def step(self, spent: float) -> dict[str, torch.Tensor]:
        self.spent.append(spent)
        loss = (self.model.weight - 3).square().sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.average.update(self.model, self.progress.steps)
        return {"loss": loss}

    def run(self, seconds: float, planned_s: float) -> None:
        self.progress.run("test", self.step, lambda: "no data", time.monotonic() + seconds, planned_s)


def test_it_goes_on_from_its_file(tmp_path):
    first = Training(tmp_path / "state.pt")
    first.run(0.1, planned_s=0.2)
    assert first.progress.steps == len(first.spent) > 1
    assert first.spent == sorted(first.spent) and first.spent[-1] < 0.6
    second = Training(tmp_path / "state.pt")
    assert (second.progress.steps, second.progress.spent_s) == (first.progress.steps, first.progress.spent_s)
    torch.testing.assert_close(second.model.weight, first.model.weight, rtol=0, atol=0)
    torch.testing.assert_close(second.average.state_dict(), first.average.state_dict(), rtol=0, atol=0)
    first.step(1.0), second.step(1.0)  # the optimiser's moments as well
    torch.testing.assert_close(second.model.weight, first.model.weight, rtol=0, atol=0)


def test_the_rate_falls_to_a_twentieth_and_stays_there():
    assert [falling(spent) for spent in (0.0, 0.5, 1.0, 2.0)] == pytest.approx([1.0, 0.525, 0.05, 0.05])
