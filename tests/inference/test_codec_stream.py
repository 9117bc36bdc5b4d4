"""The two decode modes: stateful equals one decode of the whole, windowed is the published way."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checkpoints import small_codec, small_config

from inference.codec import Codec
from inference.codec_stream import StatefulDecoder, WindowedDecoder
from inference.convolution import History

LENGTHS = (1, 3, 4, 5, 28, 29, 30, 54, 150, 300)


def codes_of(frames: int, seed: int = 0, size: int = 256) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, size, (1, 10, frames)).astype(np.uint16)


def decode_in(decoder, codes: np.ndarray, chunks: list[int]) -> np.ndarray:
    state, pieces, start = decoder.open(), [], 0
    for frames in chunks:
        pieces.append(decoder.decode([state], codes[:, :, start : start + frames])[0])
        start += frames
    assert start == codes.shape[2]
    return np.concatenate(pieces)


def schedule(frames: int, first: int, then: int) -> list[int]:
    chunks = [min(first, frames)]
    while sum(chunks) < frames:
        chunks.append(min(then, frames - sum(chunks)))
    return chunks


@pytest.fixture(scope="module")
def codec() -> Codec:
    return small_codec()


# Frame by frame up to 150 frames, which is past the attention window of 128.
CASES = [
    (n, *chunks) for n in LENGTHS for chunks in ((4, 25), (1, 1), (3, 8), (25, 25)) if n <= 150 or chunks != (1, 1)
]


@pytest.mark.parametrize("frames, first, then", CASES)
def test_stateful_pieces_equal_the_whole(codec, frames, first, then):
    codes = codes_of(frames)
    with torch.inference_mode():
        whole = codec.decode(torch.from_numpy(codes.astype(np.int64)))[0].numpy()
    pieces = decode_in(StatefulDecoder(codec), codes, schedule(frames, first, then))
    np.testing.assert_allclose(pieces, whole, atol=2e-5)


def test_streams_decoded_in_one_call_equal_each_alone(codec):
    decoder = StatefulDecoder(codec)
    rows = [codes_of(33, seed) for seed in range(3)]
    alone = [decode_in(decoder, codes, [4, 25, 4]) for codes in rows]
    states, together = [decoder.open() for _ in rows], [[], [], []]
    for start, frames in ((0, 4), (4, 25), (29, 4)):
        codes = np.concatenate(rows)[:, :, start : start + frames]
        for row, samples in enumerate(decoder.decode(states, codes)):
            together[row].append(samples)
    for expected, samples in zip(alone, together, strict=True):
        np.testing.assert_allclose(np.concatenate(samples), expected, atol=2e-5)


@pytest.mark.parametrize("frames", [4, 29, 60])
def test_windowed_keeps_exactly_the_new_frames(codec, frames):
    codes = codes_of(frames)
    chunks = schedule(frames, 4, 25)
    samples = decode_in(WindowedDecoder(codec, context=25), codes, chunks)
    assert len(samples) == frames * 2048
    start = 0
    for new in chunks:
        context = min(25, start)
        window = torch.from_numpy(codes[:, :, start - context : start + new].astype(np.int64))
        with torch.inference_mode():
            expected = codec.decode(window)[0, context * 2048 :].numpy()
        np.testing.assert_array_equal(samples[start * 2048 : (start + new) * 2048], expected)
        start += new


def test_a_stream_that_outgrows_its_positions_is_refused_before_anything_moves(codec):
    decoder = StatefulDecoder(codec)
    states = [decoder.open(), decoder.open()]
    decoder.decode(states[:1], codes_of(2))
    decoder.decode(states[1:], codes_of(2))
    states[1].frames = 16_380
    kept = [value.clone() for value in states[0].kept]
    with pytest.raises(ValueError, match="at most 16384 frames, got 16385"):
        decoder.decode(states, np.concatenate([codes_of(5)] * 2))
    assert states[0].frames == 2 and states[1].frames == 16_380
    assert all(torch.equal(*pair) for pair in zip(kept, states[0].kept, strict=True))
    decoder.decode(states, np.concatenate([codes_of(4)] * 2))
    assert [state.frames for state in states] == [6, 16_384]


def test_a_piece_of_a_stream_asks_for_no_value():
    """Tensors without values: whatever asks for one raises, so a graph can hold the decode."""
    with torch.device("meta"), torch.inference_mode():
        codec = Codec(small_config())
        codes, history = torch.zeros((2, 10, 4), dtype=torch.int64), History()
        for _ in range(2):
            assert codec.decode(codes, history).shape == (2, 4 * codec.frame_samples)
