"""The running average of a model's weights, which is better than the weights of any one step."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Average:
    """average ← average + (1 − decay) (weights − average), with a shorter memory in the first steps."""

    def __init__(self, model: nn.Module, decay: float = 0.999):
        self._decay = decay
        self._names = [name for name, _ in model.named_parameters()]
        self._values = [parameter.detach().clone() for parameter in model.parameters()]

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Move towards the model's weights after step number `step`."""
        decay = min(self._decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self._values, list(model.parameters()), 1 - decay)

    def state_dict(self) -> dict[str, Tensor]:
        """The averaged weights under the model's names."""
        return dict(zip(self._names, self._values, strict=True))

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state_dict` returned."""
        for name, value in zip(self._names, self._values, strict=True):
            value.copy_(state[name])
