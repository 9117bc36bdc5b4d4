"""The full-size codec against golden values, whole and in pieces."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from parity import codec_state, golden, real_config

from inference.checkpoint import fold_weight_norm
from inference.codec import Codec
from inference.codec_stream import WindowedDecoder
from inference.convolution import History


@pytest.fixture(scope="module")
def codec() -> Codec:
    """Folded whole: nothing is missing, nothing is left over."""
    model = Codec(real_config())
    model.load_state_dict(fold_weight_norm(codec_state()))
    return model.eval().requires_grad_(False)


def snr_db(signal: np.ndarray, other: np.ndarray) -> float:
    return float(10 * np.log10((signal**2).sum() / ((signal - other) ** 2).sum()))


def test_decode(codec):
    values = golden("codec_decode")
    codes = torch.from_numpy(values["codes"])
    quantized = codec.quantizer.decode(codes)
    np.testing.assert_allclose(quantized, values["quantized"], atol=2e-5)
    post = codec.quantizer.post_module(quantized, History())
    np.testing.assert_allclose(post, values["post_module"], atol=2e-5)
    np.testing.assert_allclose(codec.quantizer.upsample(post, History()), values["upsampled"], atol=2e-5)
    waveform = codec.decode(codes).numpy()
    np.testing.assert_allclose(waveform, values["waveform"][0], atol=2e-5)
    assert snr_db(values["waveform"][0], waveform) > 95


def test_pieces_equal_the_whole(codec):
    values = golden("codec_decode")
    history, pieces, start = History(), [], 0
    for frames in (4, 25, 1, 3, 7):
        pieces.append(codec.decode(torch.from_numpy(values["codes"][:, :, start : start + frames]), history))
        start += frames
    assert start == 40
    np.testing.assert_allclose(torch.cat(pieces, dim=1), values["waveform"][0], atol=2e-5)


def test_windows_equal_the_published_ones(codec):
    values = golden("codec_decode")
    codes, decoder = values["codes"].astype(np.uint16), WindowedDecoder(codec, context=25)
    state = decoder.open()
    pieces = [decoder.decode([state], codes[:, :, begin:end])[0] for begin, end in ((0, 4), (4, 29), (29, 40))]
    np.testing.assert_allclose(np.concatenate(pieces), values["waveform_windowed"][0, 0], atol=2e-5)


def test_codes_out_of_range_are_clamped(codec):
    values = golden("codec_decode")
    waveform = codec.decode(torch.from_numpy(values["oor_codes"]))
    np.testing.assert_allclose(waveform, values["oor_waveform"][0], atol=2e-5)


def test_the_window_forgets(codec):
    values = golden("codec_post_long")
    quantized = codec.quantizer.decode(torch.from_numpy(values["codes"]))
    whole = codec.quantizer.post_module(quantized, History())
    history = History()
    pieces = []
    for piece in quantized.split(25, dim=-1):
        history.begin(0, 1)
        pieces.append(codec.quantizer.post_module(piece, history))
    for post in (whole, torch.cat(pieces, dim=-1)):
        np.testing.assert_allclose(post[0].T[values["frame_index"]], values["post_module"], atol=3e-5)


def test_encode(codec):
    values = golden("codec_encode")
    waveform = torch.from_numpy(values["waveform"])[None]
    latent = codec.encoder(torch.nn.functional.pad(waveform, (0, 26 * 2048 - waveform.shape[1]))[:, None], History())
    np.testing.assert_allclose(latent, values["encoder_out"], atol=1e-4)
    pre = codec.quantizer.pre_module(codec.quantizer.downsample(latent, History()), History())
    np.testing.assert_allclose(pre, values["pre_module"], atol=1e-4)
    np.testing.assert_array_equal(codec.encode(waveform), values["codes"])
    np.testing.assert_array_equal(codec.encode(waveform[:, : 24 * 2048]), values["codes_multiple_24x2048"])
    other = codec.encode(torch.from_numpy(values["waveform_b"])[None])
    np.testing.assert_array_equal(other[0], values["batch_codes"][1, :, :15])
