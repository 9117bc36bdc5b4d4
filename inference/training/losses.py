"""How far one waveform is from another: log mels and log spectra at several resolutions, L1.

Shapes: B rows, N samples.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inference.training.mel import RATE, mel_bank

MELS = ((2048, 128), (1024, 96), (512, 64), (256, 40), (128, 20), (64, 10))
"""Window and bands of each mel resolution; the hop is a quarter of the window."""
SPECTRA = (2048, 1024, 512)
_FLOOR = 1e-5


class SpectralDistance(nn.Module):
    """`forward` gives (mel distance, spectral distance), each a mean over its resolutions, in nepers."""

    def __init__(self):
        super().__init__()
        for window, bands in MELS:
            self.register_buffer(f"hann_{window}", torch.hann_window(window), persistent=False)
            bank = torch.from_numpy(mel_bank(window, bands, 0.0, RATE / 2))
            self.register_buffer(f"bank_{window}", bank, persistent=False)

    def forward(self, made: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """made, real float32 [B, N]."""
        mel = spectrum = made.new_zeros(())
        both = torch.cat((made, real))
        for window, _ in MELS:
            magnitude = self._magnitude(both, window)
            bands = (getattr(self, f"bank_{window}") @ magnitude).clamp_min(_FLOOR * window).log()
            mel = mel + F.l1_loss(*bands.chunk(2)) / len(MELS)
            if window in SPECTRA:
                spectrum = spectrum + F.l1_loss(*magnitude.clamp_min(_FLOOR * window).log().chunk(2)) / len(SPECTRA)
        return mel, spectrum

    def _magnitude(self, x: Tensor, window: int) -> Tensor:
        """[B, N] -> [B, window / 2 + 1, columns]."""
        hann = getattr(self, f"hann_{window}")
        parts = torch.view_as_real(torch.stft(x, window, window // 4, window=hann, return_complex=True))
        return (parts.square().sum(-1) + 1e-12).sqrt()
