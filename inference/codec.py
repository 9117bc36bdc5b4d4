"""The neural codec: codes to waveform, whole or piece by piece, and waveform to codes.

Shapes: B rows, Q codebooks, T frames, C channels, N samples.  One frame is `codec_frame_size` samples.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inference.codec_transformer import MOST_POSITIONS, WindowTransformer
from inference.config import ArkttsConfig
from inference.convolution import (
    CausalConv,
    CausalTransposedConv,
    ConvNeXtBlock,
    History,
    ResidualUnit,
    Snake,
    Steps,
)
from inference.transformer import TransformerShape


class VectorQuantizer(nn.Module):
    """One codebook behind two pointwise projections."""

    def __init__(self, channels: int, size: int, dim: int):
        super().__init__()
        self.in_proj = nn.Conv1d(channels, dim, 1)
        self.out_proj = nn.Conv1d(dim, channels, 1)
        self.codebook = nn.Embedding(size, dim)

    def decode(self, codes: Tensor) -> Tensor:
        """codes [B, T] -> [B, C, T].  Codes beyond the codebook are clamped, as the published decoder does."""
        entries = self.codebook(codes.clamp(0, self.codebook.num_embeddings - 1))
        return self.out_proj(entries.transpose(1, 2))

    def encode(self, x: Tensor) -> Tensor:
        """x [B, C, T] -> codes [B, T]: the entry nearest by angle."""
        projected = F.normalize(self.in_proj(x).transpose(1, 2), dim=-1)
        return (projected @ F.normalize(self.codebook.weight, dim=-1).T).argmax(dim=-1)


class ResidualQuantizer(nn.Module):
    """Codebooks of which each codes what the ones before left."""

    def __init__(self, count: int, channels: int, size: int, dim: int):
        super().__init__()
        self.quantizers = nn.ModuleList(VectorQuantizer(channels, size, dim) for _ in range(count))

    def decode(self, codes: Tensor) -> Tensor:
        """codes [B, count, T] -> [B, C, T]."""
        return sum(quantizer.decode(codes[:, i]) for i, quantizer in enumerate(self.quantizers))

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [B, C, T] -> codes [B, count, T] and what is left of x."""
        codes = []
        for quantizer in self.quantizers:
            codes.append(quantizer.encode(x))
            x = x - quantizer.decode(codes[-1])
        return torch.stack(codes, dim=1), x


class Quantizer(nn.Module):
    """Down to the frame rate, ten codes a frame, and up again."""

    def __init__(self, config: ArkttsConfig):
        super().__init__()
        channels, dim = config.codec_latent_dim, config.codec_codebook_dim
        self.semantic_quantizer = ResidualQuantizer(1, channels, config.codec_semantic_codebook_size, dim)
        self.quantizer = ResidualQuantizer(config.num_codebooks - 1, channels, config.codec_residual_codebook_size, dim)
        factors = config.codec_downsample_factors
        self.downsample = Steps(
            *(Steps(CausalConv(channels, channels, f, stride=f), ConvNeXtBlock(channels)) for f in factors)
        )
        self.upsample = Steps(
            *(Steps(CausalTransposedConv(channels, channels, f, f), ConvNeXtBlock(channels)) for f in reversed(factors))
        )
        self.pre_module = _transformer(config, "pre")
        self.post_module = _transformer(config, "post")

    def decode(self, codes: Tensor) -> Tensor:
        """codes [B, Q, T] -> the sum of all codebooks' entries, [B, C, T]."""
        return self.semantic_quantizer.decode(codes[:, :1]) + self.quantizer.decode(codes[:, 1:])

    def encode(self, latent: Tensor, history: History) -> Tensor:
        """The encoder's output [B, C, T * 4] -> codes [B, Q, T]."""
        x = self.pre_module(self.downsample(latent, history), history)
        semantic, left = self.semantic_quantizer.encode(x)
        residual, _ = self.quantizer.encode(left)
        return torch.cat((semantic, residual), dim=1)


def _transformer(config: ArkttsConfig, which: str) -> WindowTransformer:
    heads = getattr(config, f"codec_{which}_n_head")
    shape = TransformerShape(
        dim=config.codec_latent_dim,
        n_layer=getattr(config, f"codec_{which}_n_layer"),
        n_head=heads,
        n_local_heads=getattr(config, f"codec_{which}_n_local_heads"),
        head_dim=config.codec_latent_dim // heads,
        intermediate_size=getattr(config, f"codec_{which}_intermediate_size"),
        norm_eps=config.codec_norm_eps,
        layer_scale=True,
    )
    return WindowTransformer(shape, config.codec_window_size, config.codec_rope_base)


class DecoderBlock(nn.Module):
    """Snake, upsampling, three residual units."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.block = Steps(
            Snake(inputs),
            CausalTransposedConv(inputs, outputs, 2 * stride, stride),
            *(ResidualUnit(outputs, dilation) for dilation in (1, 3, 9)),
        )

    def forward(self, x: Tensor, history: History) -> Tensor:
        return self.block(x, history)


class Decoder(nn.Module):
    """Latents at four a frame to samples."""

    def __init__(self, config: ArkttsConfig):
        super().__init__()
        width, rates = config.codec_decoder_dim, config.codec_decoder_rates
        blocks = [DecoderBlock(width >> i, width >> (i + 1), rate) for i, rate in enumerate(rates)]
        last = width >> len(rates)
        self.model = Steps(CausalConv(config.codec_latent_dim, width, 7), *blocks, Snake(last), CausalConv(last, 1, 7))

    def forward(self, x: Tensor, history: History) -> Tensor:
        return torch.tanh(self.model(x, history))


class EncoderBlock(nn.Module):
    """Three residual units, Snake, downsampling and, in the last block, a transformer."""

    def __init__(self, outputs: int, stride: int, transformer: WindowTransformer | None):
        super().__init__()
        half = outputs // 2
        tail = () if transformer is None else (transformer,)
        self.block = Steps(
            *(ResidualUnit(half, dilation) for dilation in (1, 3, 9)),
            Snake(half),
            CausalConv(half, outputs, 2 * stride, stride=stride),
            *tail,
        )

    def forward(self, x: Tensor, history: History) -> Tensor:
        return self.block(x, history)


class Encoder(nn.Module):
    """Samples to latents at four a frame."""

    def __init__(self, config: ArkttsConfig):
        super().__init__()
        width, rates = config.codec_encoder_dim, config.codec_encoder_rates
        last = width << len(rates)
        heads = config.codec_encoder_n_head
        shape = TransformerShape(
            dim=last,
            n_layer=config.codec_encoder_n_layer,
            n_head=heads,
            n_local_heads=heads,
            head_dim=last // heads,
            intermediate_size=config.codec_encoder_intermediate_size,
            norm_eps=config.codec_norm_eps,
            layer_scale=True,
        )
        transformer = WindowTransformer(shape, config.codec_encoder_window_size, config.codec_rope_base)
        blocks = [
            EncoderBlock(width << (i + 1), rate, transformer if i == len(rates) - 1 else None)
            for i, rate in enumerate(rates)
        ]
        self.block = Steps(CausalConv(1, width, 7), *blocks, Snake(last), CausalConv(last, config.codec_latent_dim, 3))

    def forward(self, x: Tensor, history: History) -> Tensor:
        return self.block(x, history)


class Codec(nn.Module):
    """All weights of `codec.pth`, under the checkpoint's names."""

    def __init__(self, config: ArkttsConfig):
        super().__init__()
        self.frame_samples = config.codec_frame_size
        self._most_encoded = MOST_POSITIONS // math.prod(config.codec_downsample_factors)  # the encoder's positions
        self.encoder = Encoder(config)
        self.quantizer = Quantizer(config)
        self.decoder = Decoder(config)

    def decode(self, codes: Tensor, history: History | None = None) -> Tensor:
        """codes int64 [B, Q, T] -> waveform [B, T * frame_samples] in −1…1.

        With a stream's `history` the codes go on where its last call ended, and the pieces joined equal one decode of
        the whole; without one this is a whole.  Raises ValueError beyond 16,384 frames.
        """
        history = history or History()
        history.begin(codes.shape[-1], MOST_POSITIONS)
        latent = self.quantizer.post_module(self.quantizer.decode(codes), history)
        return self.decoder(self.quantizer.upsample(latent, history), history)[:, 0]

    def encode(self, waveform: Tensor, history: History | None = None) -> Tensor:
        """waveform [B, N] -> codes int64 [B, Q, ceil(N / frame_samples)]; padded with zeros on the right.

        With a recording's `history` the waveform goes on where its last call ended: pieces of whole frames, joined,
        give what one call gives for the whole.  Raises ValueError beyond 16,384 of the encoder's positions.
        """
        history = history or History()
        frames = math.ceil(waveform.shape[-1] / self.frame_samples)
        history.begin(frames, self._most_encoded)
        padded = F.pad(waveform, (0, frames * self.frame_samples - waveform.shape[-1]))
        return self.quantizer.encode(self.encoder(padded[:, None], history), history)
