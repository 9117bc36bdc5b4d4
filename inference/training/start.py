"""Where the codec starts from: quantizers that hold the constructed codes, and a decoder that sees mel columns at once.

The latent carries the principal components, divided by a common scale, in its first P channels, and one constant
channel behind them.  The constant outweighs the rest, so that the RMS norm at the end of the post module divides by
nearly the same number everywhere and its weights can undo that.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from inference.codec import Codec, VectorQuantizer
from inference.convolution import CausalConv, CausalTransposedConv, ConvNeXtBlock, ResidualUnit
from inference.training.codes import Codes
from inference.training.mel import BANDS, COLUMNS
from inference.transformer import LayerScale

_USUAL_NORM = 4.0  # of the components in the latent
_CONSTANT = 40.0  # the latent's constant channel: ten times that, so that the norm varies by half a per cent
_ANGLE = 30.0  # the quantizers' constant coordinate, in units of the longest entry
_MEL_SHIFT, _MEL_SPREAD = 4.0, 2.5  # take log mels to about zero mean and unit variance


@torch.no_grad()
def start_codec(codec: Codec, codes: Codes) -> None:
    """Write the codes into the quantizers and set every other weight to where training begins."""
    _unit_gain(codec)
    scale = component_scale(codes)
    quantizer = codec.quantizer
    all_quantizers = (*quantizer.semantic_quantizer.quantizers, *quantizer.quantizer.quantizers)
    for target, book in zip(all_quantizers, torch.from_numpy(codes.books), strict=True):
        _fill_quantizer(target, book, scale)
    constant_channel = codes.basis.shape[1]
    all_quantizers[0].out_proj.bias[constant_channel] = _CONSTANT
    for module in (quantizer.post_module, quantizer.pre_module):
        module.norm.weight.fill_(_CONSTANT / math.sqrt(len(module.norm.weight)))
    _unpack_columns(quantizer.upsample[0][0].conv, quantizer.upsample[1][0].conv, codes, scale)
    # The encoder has to make the constant by itself.
    quantizer.downsample[-1][0].conv.bias[constant_channel] = _CONSTANT


def component_scale(codes: Codes) -> float:
    """Components divided by this have a usual norm of `_USUAL_NORM`."""
    return float((codes.books[0] ** 2).sum(1).mean() ** 0.5) / _USUAL_NORM


def latent_table(codec: Codec) -> Tensor:
    """What each entry of each book adds to the latent, [Q, K, C]: decoding is then one gather and one sum."""
    quantizer = codec.quantizer
    tables = []
    for entry in (*quantizer.semantic_quantizer.quantizers, *quantizer.quantizer.quantizers):
        every = torch.arange(entry.codebook.num_embeddings, device=entry.codebook.weight.device)
        tables.append(entry.decode(every[None])[0].T)
    return torch.stack(tables).detach()


def _fill_quantizer(target: VectorQuantizer, book: Tensor, scale: float) -> None:
    """Entries [K, P] and one more coordinate, large and the same for entries and inputs.

    The format's quantizers compare directions.  With that coordinate the nearest by angle is the nearest by distance;
    the output projection ignores it.
    """
    components = book.shape[1]
    # What a book's inputs reach is not much more than what its entries do: those are their averages.
    constant = _ANGLE * float(book.norm(dim=1).max())
    target.codebook.weight.copy_(torch.cat((book, torch.full((len(book), 1), constant)), dim=1))
    for convolution in (target.in_proj, target.out_proj):
        convolution.weight.zero_()
        convolution.bias.zero_()
    identity = torch.eye(components)[..., None]
    target.in_proj.weight[:components, :components] = identity * scale
    target.in_proj.bias[components] = constant
    target.out_proj.weight[:components, :components] = identity / scale


def _unpack_columns(first: nn.ConvTranspose1d, second: nn.ConvTranspose1d, codes: Codes, scale: float) -> None:
    """Two doublings that turn a frame's components into its four mel columns, bands in the first channels, about unit
    size."""
    components = codes.basis.shape[1]
    columns = torch.from_numpy(codes.basis).T.reshape(components, COLUMNS, BANDS)
    for convolution in (first, second):
        convolution.weight.zero_()
        convolution.bias.zero_()
    for half in range(2):
        pair = columns[:, 2 * half : 2 * half + 2].reshape(components, 2 * BANDS)
        first.weight[:components, : 2 * BANDS, half] = pair * scale / _MEL_SPREAD
    for column in range(2):
        second.weight[column * BANDS : (column + 1) * BANDS, :BANDS, column] = torch.eye(BANDS)
    mean = torch.from_numpy(codes.mean).reshape(COLUMNS, BANDS).mean(0)
    second.bias[:BANDS] = (mean + _MEL_SHIFT) / _MEL_SPREAD


def _unit_gain(codec: Codec) -> None:
    """Convolutions that keep the size of their input, branches that begin small, a last layer that begins quiet."""
    for module in codec.modules():
        if isinstance(module, CausalConv):
            _normal(module.conv, module.conv.weight[0].numel())
        elif isinstance(module, CausalTransposedConv):
            _normal(module.conv, module.conv.in_channels * (module.past + 1))
        elif isinstance(module, LayerScale):
            module.gamma.fill_(1e-2)
        elif isinstance(module, ConvNeXtBlock):
            module.gamma.fill_(5e-2)
    for module in codec.modules():
        if isinstance(module, ResidualUnit):
            module.block[-1].conv.weight.mul_(0.3)
    codec.decoder.model[-1].conv.weight.mul_(0.1)


def _normal(convolution: nn.Module, inputs: int) -> None:
    nn.init.normal_(convolution.weight, std=1 / math.sqrt(inputs))
    nn.init.zeros_(convolution.bias)
