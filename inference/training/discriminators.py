"""Critics of the waveform, for training alone: one looks at periods (Kong et al. 2020), one at spectrograms
(Jang et al. 2021).

Shapes: B rows, N samples.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

PERIODS = (2, 3, 5, 7, 11)
WINDOWS = (2048, 1024, 512)
_SLOPE = 0.1


class Critic(nn.Module):
    """A stack of convolutions; `forward` gives all its activations, the scores last."""

    def __init__(self, layers: list[nn.Module]):
        super().__init__()
        self.layers = nn.ModuleList(weight_norm(layer) for layer in layers)

    def forward(self, x: Tensor) -> list[Tensor]:
        outputs = []
        for layer in self.layers[:-1]:
            x = F.leaky_relu(layer(x), _SLOPE)
            outputs.append(x)
        return [*outputs, self.layers[-1](x)]


class PeriodCritic(Critic):
    """Samples that are a period apart side by side: [B, N] folded to [B, 1, N / period, period]."""

    def __init__(self, period: int, widths: tuple[int, ...] = (16, 64, 128, 256)):
        inputs = (1, *widths[:-1])
        layers = [nn.Conv2d(i, o, (5, 1), (3, 1), padding=(2, 0)) for i, o in zip(inputs, widths, strict=True)]
        layers.append(nn.Conv2d(widths[-1], widths[-1], (5, 1), padding=(2, 0)))
        layers.append(nn.Conv2d(widths[-1], 1, (3, 1), padding=(1, 0)))
        super().__init__(layers)
        self.period = period

    def forward(self, x: Tensor) -> list[Tensor]:
        x = x[:, : x.shape[1] // self.period * self.period]
        return super().forward(x.view(len(x), 1, -1, self.period))


class SpectrumCritic(Critic):
    """The magnitude spectrogram of one window length, as an image [B, 1, columns, bins]."""

    def __init__(self, window: int, width: int = 32):
        layers = [nn.Conv2d(1, width, (3, 9), padding=(1, 4))]
        layers += [nn.Conv2d(width, width, (3, 9), (1, 2), padding=(1, 4)) for _ in range(3)]
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, 1, 3, padding=1)]
        super().__init__(layers)
        self.window = window
        self.register_buffer("hann", torch.hann_window(window), persistent=False)

    def forward(self, x: Tensor) -> list[Tensor]:
        with torch.autocast(x.device.type, enabled=False):
            hop = self.window // 4
            spectrum = torch.stft(x.float(), self.window, hop, window=self.hann, return_complex=True)
            parts = torch.view_as_real(spectrum)
            magnitude = (parts.square().sum(-1) + 1e-9).sqrt() * (8 / self.window**0.5)
        return super().forward(magnitude.transpose(1, 2)[:, None])


class Critics(nn.Module):
    """All of them; `forward` gives each one's activations."""

    def __init__(self):
        super().__init__()
        self.critics = nn.ModuleList([*map(PeriodCritic, PERIODS), *map(SpectrumCritic, WINDOWS)])

    def forward(self, x: Tensor) -> list[list[Tensor]]:
        """x float32 [B, N]."""
        return [critic(x) for critic in self.critics]


def critics_loss(critics: Critics, real: Tensor, made: Tensor) -> Tensor:
    """Least squares: real scores towards 1, made ones towards 0."""
    total = real.new_zeros(())
    for activations in critics(torch.cat((real, made))):
        scores_real, scores_made = activations[-1].float().chunk(2)
        total = total + (1 - scores_real).square().mean() + scores_made.square().mean()
    return total / len(critics.critics)


def maker_loss(critics: Critics, real: Tensor, made: Tensor) -> tuple[Tensor, Tensor]:
    """(made scores towards 1, distance of the activations for real and made relative to the real ones' size)."""
    adversarial, matching = real.new_zeros(()), real.new_zeros(())
    for activations in critics(torch.cat((real, made))):
        adversarial = adversarial + (1 - activations[-1].float().chunk(2)[1]).square().mean()
        for activation in activations[:-1]:
            of_real, of_made = activation.float().chunk(2)
            of_real = of_real.detach()
            matching = matching + F.l1_loss(of_made, of_real) / of_real.abs().mean().clamp_min(1e-4) / len(activations)
    return adversarial / len(critics.critics), matching / len(critics.critics)
