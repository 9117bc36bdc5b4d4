"""Sampling: filter, temperature, exponential race, repetition-aware resampling.

Shapes: B rows, V entries of a row of logits, N candidates kept for the race.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

MIN_TEMPERATURE = 1e-5
_FEW = 64  # candidates sorted where every row's top_k is at most this


@dataclass(frozen=True, slots=True)
class SamplingRows:
    """One sampling parameter a row: temperature and top_p float32 [B], top_k int64 [B].

    `widest`: entries to sort, None for all.  It takes two values only, so that a row's candidates do not depend on the
    top_k of its neighbours more than they must.
    """

    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    widest: int | None

    @classmethod
    def of(cls, rows: list[tuple[float, int, float]], device: torch.device | str = "cpu") -> SamplingRows:
        """From (temperature, top_k, top_p) of each row."""
        temperature, top_k, top_p = zip(*rows, strict=True)
        return cls(
            torch.tensor(temperature, dtype=torch.float32, device=device).clamp_min(MIN_TEMPERATURE),
            torch.tensor(top_k, dtype=torch.int64, device=device),
            torch.tensor(top_p, dtype=torch.float32, device=device),
            _FEW if max(top_k) <= _FEW else None,
        )

    def with_ras(self, temperature: float, top_p: float) -> SamplingRows:
        """The same top_k with the temperature and top_p of repetition-aware resampling."""
        return SamplingRows(
            torch.full_like(self.temperature, temperature), self.top_k, torch.full_like(self.top_p, top_p), self.widest
        )


def candidates(logits: Tensor, rows: SamplingRows) -> tuple[Tensor, Tensor]:
    """logits [B, V] -> scores [B, N] after filter and temperature (-inf where removed) and their ids [B, N].

    The filter works on the raw logits and comes before the temperature: in the sorted row an entry is removed if the
    cumulative probability up to and including it exceeds top_p or its rank reaches top_k; the first always stays.
    """
    logits = logits.float()
    values, ids = torch.topk(logits, min(rows.widest or logits.shape[-1], logits.shape[-1]), dim=-1)
    cumulative = torch.exp(values - torch.logsumexp(logits, dim=-1, keepdim=True)).cumsum(dim=-1)
    rank = torch.arange(values.shape[-1], device=logits.device)
    removed = (cumulative > rows.top_p[:, None]) | (rank >= rows.top_k[:, None])
    removed[:, 0] = False
    return (values / rows.temperature[:, None]).masked_fill(removed, -torch.inf), ids


def race(scores: Tensor, ids: Tensor, noise: Tensor) -> Tensor:
    """The winner of each row, int64 [B]: argmax(softmax(scores) / e), `noise` e ~ Exp(1) [B, V], in log space."""
    lead = scores - noise.gather(1, ids).log()
    return ids.gather(1, lead.argmax(dim=-1, keepdim=True)).squeeze(1)


def sample(logits: Tensor, rows: SamplingRows, noise: Tensor) -> Tensor:
    """logits [B, V], exponential noise [B, V] -> ids [B]."""
    return race(*candidates(logits, rows), noise)


def sample_semantic(
    logits: Tensor, rows: SamplingRows, ras: SamplingRows, noise_normal: Tensor, noise_high: Tensor, window: Tensor
) -> Tensor:
    """Repetition-aware draw of the semantic code: logits [B, S + 1] (end token last) -> ids [B] in 0..S.

    `normal` is drawn with the request's parameters; if it is a semantic code that occurs in `window` [B, W] (the codes
    of the last frames, -1 where there is none), `high` is taken instead, drawn afresh from the raw logits with `ras`.
    """
    normal = sample(logits, rows, noise_normal)
    repeated = (window == normal[:, None]).any(dim=1) & (normal < logits.shape[-1] - 1)
    if not repeated.any():
        return normal
    return torch.where(repeated, sample(logits, ras, noise_high), normal)
