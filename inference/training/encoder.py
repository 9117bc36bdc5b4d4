"""Training of the codec's encoder, which a listener's own voice needs: from the waveform to the principal components
that the quantizers take.  Plain regression; the built-in voices are coded by the construction itself.

Shapes: B crops, F frames of a crop, N = F * 2,048 samples, P components.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from inference.checkpoint import Checkpoint
from inference.codec import Codec
from inference.convolution import History
from inference.training.average import Average
from inference.training.codes import Codes
from inference.training.mel import BANDS, COLUMNS, FLOOR, FRAME, HOP, WINDOW, mel_bank
from inference.training.speech import Speech
from inference.training.start import component_scale, start_codec

CROPS, CROP_FRAMES, QUIET_FRAMES = 24, 24, 4
RATE = 1e-3


class VoiceEncoder(nn.Module):
    """What is trained of the codec, and the components that it should give."""

    def __init__(self, codec: Codec, codes: Codes):
        super().__init__()
        self.encoder, self.downsample, self.pre = codec.encoder, codec.quantizer.downsample, codec.quantizer.pre_module
        with torch.no_grad():  # speech is quiet, and a convolution of unit gain would let its biases drown it
            self.encoder.block[0].conv.weight.mul_(8)
        self.scale = component_scale(codes)
        constants = {"mean": codes.mean, "basis": codes.basis, "bank": mel_bank()}
        for name, value in constants.items():
            self.register_buffer(name, torch.from_numpy(value), persistent=False)
        self.register_buffer("hann", torch.hann_window(WINDOW), persistent=False)

    def forward(self, audio: Tensor) -> Tensor:
        """audio [B, N] -> components [B, F, P]."""
        latent = self.pre(self.downsample(self.encoder(audio[:, None], History()), History()), History())
        return latent[:, : self.basis.shape[1]].transpose(1, 2) * self.scale

    @torch.no_grad()
    def components(self, audio: Tensor) -> Tensor:
        """audio [B, (F + 2) * FRAME], one frame more at both ends -> components [B, F, P] as `Codes` makes them."""
        margin = FRAME - (WINDOW - HOP) // 2
        columns = audio[:, margin : audio.shape[1] - margin].unfold(1, WINDOW, HOP)
        magnitude = torch.fft.rfft(columns * self.hann).abs()
        mel = (magnitude @ self.bank.T).clamp_min(FLOOR).log()
        return (mel.reshape(len(audio), -1, COLUMNS * BANDS) - self.mean) @ self.basis


def train(model: VoiceEncoder, average: Average, speech: Speech, seconds: float, device: str) -> None:
    """Train for `seconds`; the rate falls to nothing over them."""
    optimizer = torch.optim.AdamW(model.parameters(), RATE, (0.9, 0.98), weight_decay=0.01, fused=device == "cuda")
    rng = np.random.default_rng(0)
    start = logged = time.monotonic()
    step = 0
    while (spent := time.monotonic() - start) < seconds:
        rate = RATE * min(1.0, (step + 1) / 200) * 0.5 * (1 + math.cos(math.pi * spent / seconds))
        for group in optimizer.param_groups:
            group["lr"] = rate
        first, begin = speech.crops(CROPS, CROP_FRAMES, rng)
        begins = torch.from_numpy(first == begin).to(device)
        audio = speech.audio_at(torch.from_numpy(first).to(device) - 1, CROP_FRAMES + 2)
        wanted = model.components(audio)
        made = model(audio[:, FRAME:-FRAME])
        counts = (torch.arange(CROP_FRAMES, device=device) >= QUIET_FRAMES) | begins[:, None]
        loss = ((made - wanted).square().sum(-1) * counts).sum() / (wanted.square().sum(-1) * counts).sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        average.update(model, step)
        step += 1
        if time.monotonic() - logged > 10:
            print(f"encoder {spent:.0f} s step {step} variance left {100 * loss.item():.2f} %", flush=True)
            logged = time.monotonic()


def main() -> None:
    """Train the codec's encoder for a checkpoint folder that holds config.json."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("codes", type=Path)
    parser.add_argument("shards", type=Path)
    parser.add_argument("state", type=Path, help="file to write")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--hours", type=float, default=3.0, help="hours of audio to hold")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(3)
    checkpoint, codes = Checkpoint.open(str(arguments.checkpoint)), Codes.load(arguments.codes)
    end = time.monotonic() + arguments.seconds
    speech = Speech(checkpoint.config.num_codebooks, arguments.hours, device)
    speech.wait(arguments.shards, end)
    speech.take_new(arguments.shards, most=1000)
    codec = Codec(checkpoint.config)
    start_codec(codec, codes)
    model = VoiceEncoder(codec, codes).to(device)
    average = Average(model)
    train(model, average, speech, end - time.monotonic(), device)
    torch.save(average.state_dict(), arguments.state)


if __name__ == "__main__":
    main()
