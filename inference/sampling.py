"""Sampling: penalty, filter, temperature, exponential race, repetition-aware resampling.

Shapes: B rows, V entries of a row of logits, N candidates kept for the race.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

MIN_TEMPERATURE = 1e-5
FEW = 64  # candidates sorted where every row's top_k is at most this
_TINY = torch.finfo(torch.float32).tiny  # the logarithm of the noise must be finite
_NEVER = -1.0  # a limit below any sum of probabilities


@dataclass(frozen=True, slots=True)
class SamplingRows:
    """Parameters of the rows of a step: temperature, penalty float32 [B, 1], top_k int64 [B, 1], limit float32 [B, N].

    An entry of some rank is removed if the cumulative probability up to and including it exceeds `limit` there: top_p
    up to top_k, less than 0 behind it, and infinity at the first, which always stays.
    """

    temperature: Tensor
    top_k: Tensor
    limit: Tensor
    penalty: Tensor

    @classmethod
    def of(cls, numbers: Tensor, candidates: int) -> SamplingRows:
        """From (temperature, top_k, top_p, repetition_penalty) of each row, float32 [B, 4]; `candidates`: N, the
        entries that are sorted, at least the largest top_k."""
        temperature, top_k, top_p, penalty = numbers.split(1, dim=1)
        top_k = top_k.long()
        return cls(temperature.clamp_min(MIN_TEMPERATURE), top_k, _limit(top_k, top_p, candidates), penalty)

    def with_ras(self, temperature: float, top_p: float) -> SamplingRows:
        """The same top_k with the temperature and top_p of repetition-aware resampling."""
        limit = _limit(self.top_k, torch.full_like(self.temperature, top_p), self.limit.shape[1])
        return replace(self, temperature=torch.full_like(self.temperature, temperature), limit=limit)


def _limit(top_k: Tensor, top_p: Tensor, candidates: int) -> Tensor:
    rank = torch.arange(candidates, device=top_k.device)
    limit = torch.where(rank < top_k, top_p, _NEVER)
    limit[:, 0] = torch.inf
    return limit


@dataclass(frozen=True, slots=True)
class Ranked:
    """The N largest logits of each row, descending: their values, ids and cumulative probabilities, each [B, N]."""

    values: Tensor
    ids: Tensor
    cumulative: Tensor


def penalise(logits: Tensor, said: Tensor, penalty: Tensor) -> Tensor:
    """logits [B, V]; those of `said` bool [B, V] are divided by penalty [B, 1] if positive, multiplied if not.

    This is the penalty of CTRL (Keskar et al. 2019); 1.0 leaves every bit.
    """
    return torch.where(said, torch.where(logits > 0, logits / penalty, logits * penalty), logits)


def rank(logits: Tensor, rows: SamplingRows) -> Ranked:
    """The candidates of logits [B, V], unfiltered: as many as `rows` has limits, or V."""
    logits = logits.float()
    values, ids = torch.topk(logits, min(rows.limit.shape[1], logits.shape[1]), dim=-1)
    return Ranked(values, ids, logits.softmax(dim=-1).gather(1, ids).cumsum(dim=-1))


def scores(ranked: Ranked, rows: SamplingRows) -> Tensor:
    """-> [B, N]: the filter on the raw logits, then the temperature; -inf where an entry is removed."""
    removed = ranked.cumulative > rows.limit[:, : ranked.values.shape[1]]
    return (ranked.values / rows.temperature).masked_fill_(removed, -torch.inf)


def race(ranked: Ranked, rows: SamplingRows, uniform: Tensor) -> Tensor:
    """The winner of each row, int64 [B]: argmax(softmax(scores) / e), in log space, with exponential noise
    e = -log(uniform); `uniform` [B, V] is in (0, 1]."""
    noise = uniform.gather(1, ranked.ids).log().neg_().clamp_min_(_TINY).log_()
    best = (scores(ranked, rows) - noise).argmax(dim=-1, keepdim=True)
    return ranked.ids.gather(1, best).squeeze(1)


def sample(logits: Tensor, rows: SamplingRows, uniform: Tensor) -> Tensor:
    """logits [B, V], uniform noise [B, V] -> ids [B]."""
    return race(rank(logits, rows), rows, uniform)


def sample_semantic(
    logits: Tensor, rows: SamplingRows, ras: SamplingRows, normal: Tensor, high: Tensor, window: Tensor
) -> Tensor:
    """Repetition-aware draw of the semantic code: logits [B, S + 1] (end token last) -> ids [B] in 0..S.

    One id is drawn with the request's parameters and the noise `normal`; if it is a semantic code that occurs in
    `window` [B, W] (the codes of the last frames, -1 where there is none), the one drawn from the same logits with
    `ras` and the noise `high` is taken instead.  Both are always drawn: nothing is asked of the device in between.
    """
    ranked = rank(logits, rows)
    drawn = race(ranked, rows, normal)
    repeated = (window == drawn[:, None]).any(dim=1)  # never the end token: the window has frames only
    return torch.where(repeated, race(ranked, ras, high), drawn)
