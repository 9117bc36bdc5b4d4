"""Training of the codec's decoder: from the constructed codes to the waveform, as a vocoder.

First spectral distances alone, then critics as well.  Crops have no past, so their first frames are left out of the
losses, except where a crop is the begin of an utterance.  The post module sees a long window: it is cheap there.

Shapes: B crops, W frames of the window, F frames of a crop, N = F * 2,048 samples, Q codebooks.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from inference.checkpoint import Checkpoint
from inference.codec import Codec
from inference.convolution import History
from inference.training.average import Average
from inference.training.codes import Codes
from inference.training.discriminators import Critics, critics_loss, maker_loss
from inference.training.losses import SpectralDistance
from inference.training.mel import FRAME
from inference.training.progress import Progress, falling
from inference.training.replay import Replay
from inference.training.speech import Speech
from inference.training.start import latent_table, start_codec
from inference.transformer import attend_causal, run_blocks, turns_at

_WARMUP_STEPS = 200


@dataclass(frozen=True)
class Settings:
    """`quiet_frames`: frames at a crop's begin that no loss sees; `alone_s`: seconds of training before the critics;
    `critics_first`: steps in which the critics learn and the decoder does not, for a decoder that is good already."""

    crops: int = 16
    crop_frames: int = 16
    quiet_frames: int = 4
    rate: float = 6e-4
    critic_rate: float = 3e-4
    alone_s: float = 150.0
    critics_first: int = 0
    mel_weight: float = 7.0
    spectrum_weight: float = 2.0
    matching_weight: float = 2.0
    graphs: bool = True


class Vocoder(nn.Module):
    """What is trained of the codec: post module, upsampling, decoder."""

    def __init__(self, codec: Codec, window: int):
        super().__init__()
        self.post, self.upsample, self.decoder = codec.quantizer.post_module, codec.quantizer.upsample, codec.decoder
        if window > self.post.past + 1:
            raise ValueError(f"a window of {window} frames exceeds the attention window of {self.post.past + 1}")
        self.register_buffer("table", latent_table(codec), persistent=False)  # [Q, K, C]

    def forward(self, codes: Tensor, first: Tensor, frames: int) -> Tensor:
        """codes [B, W, Q]; the waveform [B, N] of the `frames` frames from `first` [B] on."""
        books = torch.arange(codes.shape[2], device=codes.device)
        latent = self.table[books, codes].sum(2)  # [B, W, C]
        positions = torch.arange(codes.shape[1], device=codes.device)[None]
        latent = run_blocks(self.post.layers, latent, turns_at(self.post.rope, positions), attend_causal)
        crop = (first[:, None] + torch.arange(frames, device=first.device))[..., None].expand(-1, -1, latent.shape[2])
        crop = self.post.norm(latent.gather(1, crop)).transpose(1, 2)
        return self.decoder(self.upsample(crop, History()), History())[:, 0]


class Training:
    """Vocoder, critics, their optimisers, and how far they have come."""

    def __init__(self, codec: Codec, window: int, speech: Speech, state_file: Path, settings: Settings, device: str):
        """`codec`: where training starts, unless there is a state to go on from; `window` frames are its past."""
        self.settings, self.device, self._speech = settings, device, speech
        self.vocoder = Vocoder(codec, window).to(device).requires_grad_(True)
        self.critics, self.distance = Critics().to(device), SpectralDistance().to(device)
        self.average = Average(self.vocoder)
        self.optimizer = self._adam(self.vocoder, settings.rate, (0.8, 0.99))
        self.critic_optimizer = self._adam(self.critics, settings.critic_rate, (0.8, 0.99))
        self.window = window
        # First frame of each window and of each crop in the pool, and whether the crop begins its utterance.
        self.where = torch.zeros(3, settings.crops, dtype=torch.int64, device=device)
        self.progress = Progress(
            state_file, device, vocoder=self.vocoder, critics=self.critics, average=self.average,
            optimizer=self.optimizer, critic_optimizer=self.critic_optimizer,
        )  # fmt: skip
        graphs = settings.graphs and device == "cuda"
        self._alone, self._criticised = Replay(self._step_alone, graphs), Replay(self._step_criticised, graphs)

    def _adam(self, module: nn.Module, rate: float, betas: tuple[float, float]) -> torch.optim.Optimizer:
        on_gpu = self.device == "cuda"
        rate = torch.tensor(rate, device=self.device) if on_gpu else rate
        return torch.optim.AdamW(module.parameters(), rate, betas, weight_decay=0.01, fused=on_gpu, capturable=on_gpu)

    def step(self, rng: np.random.Generator, spent: float) -> dict[str, Tensor]:
        """One update when a share of the plan is `spent`."""
        share = min(1.0, (self.progress.steps + 1) / _WARMUP_STEPS) * falling(spent)
        learns = self.progress.steps >= self.settings.critics_first
        _set_rate(self.optimizer, self.settings.rate * share if learns else 0.0)
        _set_rate(self.critic_optimizer, self.settings.critic_rate * share)
        self.where.copy_(self._crops(rng))
        losses = self._alone() if self.progress.spent_s < self.settings.alone_s else self._criticised()
        self.average.update(self.vocoder, self.progress.steps)
        return losses

    def _crops(self, rng: np.random.Generator) -> Tensor:
        """Random crops: rows of `where`."""
        first, begin = self._speech.crops(self.settings.crops, self.settings.crop_frames, rng)
        window = np.maximum(begin, first + self.settings.crop_frames - self.window)
        return torch.from_numpy(np.stack((window, first, first == begin)))

    def _made_and_real(self) -> tuple[Tensor, Tensor]:
        """Waveforms [B, N], both silent where no loss shall look."""
        window, first, begins = self.where
        frames, quiet = self.settings.crop_frames, self.settings.quiet_frames * FRAME
        made = self.vocoder(self._speech.codes_at(window, self.window), first - window, frames)
        real = self._speech.audio_at(first, frames)
        heard = (torch.arange(frames * FRAME, device=made.device) >= quiet) | (begins[:, None] > 0)
        return made * heard, real * heard

    def _step_alone(self) -> dict[str, Tensor]:
        made, real = self._made_and_real()
        mel, spectrum = self.distance(made, real)
        self._update(self.settings.mel_weight * mel + self.settings.spectrum_weight * spectrum)
        return {"mel": mel.detach(), "spectrum": spectrum.detach()}

    def _step_criticised(self) -> dict[str, Tensor]:
        made, real = self._made_and_real()
        with torch.autocast(self.device, torch.bfloat16):
            critics = critics_loss(self.critics, real, made.detach())
        self.critic_optimizer.zero_grad(set_to_none=True)
        critics.backward()
        nn.utils.clip_grad_norm_(self.critics.parameters(), 10.0)
        self.critic_optimizer.step()

        self.critics.requires_grad_(False)
        with torch.autocast(self.device, torch.bfloat16):
            adversarial, matching = maker_loss(self.critics, real, made)
        self.critics.requires_grad_(True)
        mel, spectrum = self.distance(made, real)
        weights = self.settings
        total = weights.mel_weight * mel + weights.spectrum_weight * spectrum
        self._update(total + adversarial + weights.matching_weight * matching)
        losses = {"mel": mel, "spectrum": spectrum, "critics": critics}
        losses |= {"adversarial": adversarial, "matching": matching}
        return {name: value.detach() for name, value in losses.items()}

    def _update(self, loss: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.vocoder.parameters(), 10.0)
        self.optimizer.step()


def _set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def start(checkpoint: Checkpoint, codes: Codes, trained: Path | None) -> Codec:
    """A codec to begin with: the construction, or what a checkpoint with the same codes has learnt already."""
    if trained is not None:
        return Checkpoint.open(str(trained)).load_codec("float32", "cpu")
    codec = Codec(checkpoint.config)
    start_codec(codec, codes)
    return codec


def train(training: Training, speech: Speech, shards: Path, seconds: float, planned_s: float) -> None:
    """Train for `seconds`; the rates fall over `planned_s` seconds of training, those before this call included."""
    end = time.monotonic() + seconds
    speech.wait(shards, end)
    rng = np.random.default_rng(training.progress.steps)

    def step(spent: float) -> dict[str, Tensor]:
        if training.progress.steps % 100 == 0:
            speech.take_new(shards, most=2)
        return training.step(rng, spent)

    training.progress.run("vocoder", step, lambda: f"hours {speech.hours:.2f}", end, planned_s)


def main() -> None:
    """Train the codec's decoder for a checkpoint folder that holds config.json."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("codes", type=Path)
    parser.add_argument("shards", type=Path)
    parser.add_argument("state", type=Path, help="file to go on from, if it exists, and to write")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--planned-seconds", type=float, required=True)
    parser.add_argument("--alone-seconds", type=float, default=Settings.alone_s)
    parser.add_argument("--crops", type=int, default=Settings.crops)
    parser.add_argument("--hours", type=float, default=6.0, help="hours of audio to hold")
    parser.add_argument("--rate", type=float, default=Settings.rate, help="learning rate of the decoder at its peak")
    parser.add_argument("--trained", type=Path, help="checkpoint with the same codes whose decoder is to learn on")
    parser.add_argument("--critics-first", type=int, default=0, help="steps of the critics before the decoder learns")
    parser.add_argument("--eager", action="store_true", help="no CUDA graphs")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(2)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    checkpoint = Checkpoint.open(str(arguments.checkpoint))
    config = checkpoint.config
    speech = Speech(config.num_codebooks, arguments.hours, device)
    settings = Settings(
        crops=arguments.crops, rate=arguments.rate, alone_s=arguments.alone_seconds,
        critics_first=arguments.critics_first, graphs=not arguments.eager,
    )  # fmt: skip
    codec = start(checkpoint, Codes.load(arguments.codes), arguments.trained)
    training = Training(codec, config.codec_window_size, speech, arguments.state, settings, device)
    train(training, speech, arguments.shards, arguments.seconds, arguments.planned_seconds)


if __name__ == "__main__":
    main()
