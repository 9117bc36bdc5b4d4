"""Training of the language model: slow and fast AR, on a corpus that grows meanwhile.

Both the reference's frames and the target's are predicted: a reference follows its text, so it is speech to learn from
as well.  Two auxiliary heads, dropped afterwards, predict the phones of the next frame from a middle and from the last
slow layer: that makes text and speech find each other in a fraction of the steps.

Shapes: R rows, L positions, C slow width, Q codebooks, K frames that the fast AR learns from, LABELS phones a frame.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inference.checkpoint import Checkpoint
from inference.config import ArkttsConfig
from inference.dual_ar import DualAR
from inference.training.average import Average
from inference.training.corpus import Batch, Corpus
from inference.training.progress import Progress, falling
from inference.training.shards import LABELS
from inference.transformer import attend_causal, turns_at

PHONES = 256
"""More than the teacher has phone ids."""


@dataclass(frozen=True)
class Settings:
    """What a step is made of.  `corrupt_frames` and `corrupt_codes`: shares of the input that are replaced by others,
    so that what sampling gets wrong is not carried on."""

    rows: int = 64
    length: int = 1024
    fast_frames: int = 8192
    rate: float = 1.5e-3
    warmup_steps: int = 150
    dropout: float = 0.1
    corrupt_frames: float = 0.03
    corrupt_codes: float = 0.03
    phone_weight: float = 0.25
    min_frames: int = 60_000


class Trainee(nn.Module):
    """The model with its auxiliary heads; `forward` gives the losses of one batch."""

    def __init__(self, model: DualAR, settings: Settings):
        super().__init__()
        self.model, self.settings = model, settings
        self.phone_heads = nn.ModuleList(nn.Linear(model.config.dim, LABELS * PHONES) for _ in range(2))

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        model, config = self.model, self.model.config
        tokens, segments = batch.packed[:, 0], batch.segments
        is_frame = tokens >= config.semantic_begin_id
        following = torch.cat((segments[:, 1:] == segments[:, :-1], torch.zeros_like(is_frame[:, :1])), dim=1)
        to_frame = following & torch.roll(is_frame, -1, 1)

        embedded = model.embed(_corrupted(batch.packed, is_frame, config, self.settings))
        embedded = F.dropout(embedded, self.settings.dropout, self.training)
        middle, hidden = self._slow(embedded, batch)

        codes = torch.roll(batch.packed[:, 1:], -1, 2).transpose(1, 2)  # [R, L, Q]: the next frame's
        semantic = torch.where(to_frame, codes[..., 0], torch.where(following & is_frame, config.codebook_size, -100))
        logits = model.semantic_logits(model.norm(hidden))
        losses = {"semantic": F.cross_entropy(logits.float().flatten(0, 1), semantic.flatten(), ignore_index=-100)}
        losses["residual"] = self._residual(hidden.flatten(0, 1), codes.flatten(0, 1), to_frame.flatten())
        phones = torch.roll(batch.phones, -1, 1).masked_fill(~to_frame[..., None], -100).flatten()
        for name, head, x in zip(("phone_middle", "phone_last"), self.phone_heads, (middle, hidden), strict=True):
            losses[name] = F.cross_entropy(head(x).float().view(-1, PHONES), phones, ignore_index=-100)
        return losses

    def _slow(self, x: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Hidden [R, L, C] of the middle layer and of the last, each example seeing only itself."""
        segments = batch.segments
        length = segments.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        visible = causal & (segments[:, :, None] == segments[:, None, :])
        mask = torch.zeros_like(visible, dtype=_compute_dtype(x)).masked_fill_(~visible, -torch.inf)[:, None]

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            k, v = (part.repeat_interleave(q.shape[1] // part.shape[1], dim=1) for part in (k, v))
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

        turns = turns_at(self.model.rope, batch.positions)
        half = len(self.model.layers) // 2
        for layer in self.model.layers[:half]:
            x = layer(x, turns, attend)
        middle = x
        for layer in self.model.layers[half:]:
            x = layer(x, turns, attend)
        return middle, x

    def _residual(self, hidden: Tensor, codes: Tensor, to_frame: Tensor) -> Tensor:
        """Cross entropy of codes 1 … Q − 1 at random frames: hidden [R·L, C], codes [R·L, Q], to_frame [R·L]."""
        chance = torch.rand(len(to_frame), device=hidden.device) + to_frame
        chosen = chance.topk(self.settings.fast_frames).indices  # [K]
        codes = codes[chosen]
        first = self.model.fast_input(hidden[chosen])[:, None]
        rest = self.model.fast_embeddings(codes[:, :-1])
        logits = self.model.fast(torch.cat((first.to(rest.dtype), rest), dim=1), 0, attend_causal)[:, 1:]
        targets = codes[:, 1:].masked_fill(~to_frame[chosen][:, None], -100)
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=-100)


def _compute_dtype(x: Tensor) -> torch.dtype:
    """The dtype in which matrix products of `x` are made here."""
    return torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else x.dtype


def _corrupted(packed: Tensor, is_frame: Tensor, config: ArkttsConfig, settings: Settings) -> Tensor:
    """`packed` [R, Q + 1, L] with some frames replaced by others of the batch and some codes by random ones."""
    codes = packed[:, 1:]
    other = codes.flip(0).roll(17, 2)
    frame = torch.rand(is_frame.shape, device=packed.device)[:, None] < settings.corrupt_frames
    codes = torch.where(frame, other, codes)
    single = torch.rand(codes.shape, device=packed.device) < settings.corrupt_codes
    codes = torch.where(single, torch.randint_like(codes, config.codebook_size), codes)
    changed = torch.cat((codes[:, :1] + config.semantic_begin_id, codes), dim=1)
    return torch.where(is_frame[:, None], changed, packed)


def initialise(model: DualAR) -> None:
    """Normal weights of standard deviation 0.02, less where a branch joins the residual stream."""
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            continue
        deep = len(model.fast_layers) if name.startswith("fast_") else len(model.layers)
        joins = name.endswith(("wo.weight", "w2.weight"))
        nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * deep) if joins else 0.02)
    nn.init.normal_(model.codebook_embeddings.weight, std=0.02 / math.sqrt(model.config.num_codebooks))


class Training:
    """What is trained, and how: model, optimiser, average, and how far it has come."""

    def __init__(self, checkpoint: Checkpoint, state_file: Path, settings: Settings, device: str):
        torch.manual_seed(1)
        model = DualAR(checkpoint.config)
        initialise(model)
        self.trainee = Trainee(model, settings).to(device)
        self.average = Average(model)
        matrices = [p for p in self.trainee.parameters() if p.ndim >= 2]
        others = [p for p in self.trainee.parameters() if p.ndim < 2]
        groups = [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, settings.rate, betas=(0.9, 0.95), fused=device == "cuda")
        self.settings, self.device = settings, device
        self.progress = Progress(
            state_file, device, trainee=self.trainee, average=self.average, optimizer=self.optimizer
        )

    def step(self, batch: Batch, spent: float) -> dict[str, Tensor]:
        """One update when a share of the plan is `spent`."""
        warm = min(1.0, (self.progress.steps + 1) / self.settings.warmup_steps)
        rate = self.settings.rate * warm * falling(spent)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast(self.device, torch.bfloat16):
            losses = self.trainee(batch)
        weight = self.settings.phone_weight
        total = losses["semantic"] + losses["residual"] + weight * (losses["phone_middle"] + losses["phone_last"])
        self.optimizer.zero_grad(set_to_none=True)
        total.backward()
        nn.utils.clip_grad_norm_(self.trainee.parameters(), 1.0)
        self.optimizer.step()
        self.average.update(self.trainee.model, self.progress.steps)
        return losses


def wait_for_data(corpus: Corpus, shards: Path, frames: int, end: float) -> None:
    """Read shards until there are `frames`.  Raises TimeoutError at `end`."""
    while corpus.frames < frames:
        if not corpus.take_new(shards, most=200):
            if time.monotonic() > end:
                raise TimeoutError(f"only {corpus.frames} frames of speech arrived in {shards}")
            time.sleep(0.5)


def train(training: Training, corpus: Corpus, shards: Path, seconds: float, planned_s: float) -> None:
    """Train for `seconds`; the rate falls over `planned_s` seconds of training, those before this call included."""
    end, settings = time.monotonic() + seconds, training.settings
    wait_for_data(corpus, shards, settings.min_frames, end)
    rng = np.random.default_rng(training.progress.steps)

    def step(spent: float) -> dict[str, Tensor]:
        if training.progress.steps % 20 == 0:
            corpus.take_new(shards, most=20)
        return training.step(corpus.batch(settings.rows, settings.length, rng), spent)

    training.progress.run("language", step, lambda: f"frames {corpus.frames}", end, planned_s)


def main() -> None:
    """Train the language model of a checkpoint folder that holds config.json and tokenizer.json."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("shards", type=Path)
    parser.add_argument("state", type=Path, help="file to go on from, if it exists, and to write")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--planned-seconds", type=float, required=True)
    parser.add_argument("--rows", type=int, default=Settings.rows)
    parser.add_argument("--fast-frames", type=int, default=Settings.fast_frames)
    parser.add_argument("--min-frames", type=int, default=Settings.min_frames)
    parser.add_argument("--capacity", type=int, default=48_000_000, help="rows of the corpus")
    parser.add_argument("--compile", action="store_true", help="compile the blocks, some 20 s at the start")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    checkpoint = Checkpoint.open(str(arguments.checkpoint))
    settings = Settings(rows=arguments.rows, fast_frames=arguments.fast_frames, min_frames=arguments.min_frames)
    training = Training(checkpoint, arguments.state, settings, device)
    if arguments.compile:
        for layer in training.trainee.model.layers:
            layer.compile()
    corpus = Corpus(checkpoint.config, checkpoint.prompt_builder(), arguments.capacity, device)
    train(training, corpus, arguments.shards, arguments.seconds, arguments.planned_seconds)


if __name__ == "__main__":
    main()
