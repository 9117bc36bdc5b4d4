"""Pieces made of graphs are those of one decode of the whole; on a CPU the same work runs without being captured."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checkpoints import small_codec

from inference.cuda.codec_graphs import GraphDecoder

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def codes_of(frames: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (1, 10, frames)).astype(np.uint16)


@pytest.fixture(scope="module")
def codec():
    torch.backends.cudnn.allow_tf32 = False
    return small_codec().to(DEVICE)


@pytest.fixture(scope="module")
def decoder(codec) -> GraphDecoder:
    return GraphDecoder(codec, books=10, most_streams=3, lengths=(1, 2, 4, 25))


def whole(codec, codes: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        return codec.decode(torch.from_numpy(codes.astype(np.int64)).to(DEVICE))[0].cpu().numpy()


@pytest.mark.parametrize("pieces", [[4, 25, 25, 3], [1, 1, 7, 29], [50, 2], [150]])
def test_pieces_of_any_length_equal_the_whole(codec, decoder, pieces):
    codes, state = codes_of(sum(pieces)), decoder.open()
    parts = np.split(codes, np.cumsum(pieces)[:-1], axis=2)
    made = np.concatenate([decoder.decode([state], part)[0] for part in parts])
    assert state.frames == sum(pieces)
    np.testing.assert_allclose(made, whole(codec, codes), atol=2e-5)


def test_streams_that_begin_join_those_that_go_on_and_more_than_a_graph_holds(codec, decoder):
    rows = [codes_of(33, seed) for seed in range(6)]
    states, made = [decoder.open() for _ in rows], [[] for _ in rows]
    done = [0] * len(rows)
    for streams, frames in (([0, 1], 4), ([0, 2, 1], 5), ([0, 1, 2, 3, 4, 5], 24), ([2, 5], 4), ([3, 4, 5], 5)):
        codes = np.concatenate([rows[i][:, :, done[i] : done[i] + frames] for i in streams])
        for i, samples in zip(streams, decoder.decode([states[i] for i in streams], codes), strict=True):
            made[i].append(samples)
            done[i] += frames
    for i, samples in enumerate(made):
        np.testing.assert_allclose(np.concatenate(samples), whole(codec, rows[i][:, :, : done[i]]), atol=2e-5)


def test_a_stream_that_outgrows_its_positions_is_refused_before_anything_moves(decoder):
    states = [decoder.open(), decoder.open()]
    decoder.decode(states, np.concatenate([codes_of(2)] * 2))
    states[1].frames, kept = 16_380, states[0].kept.clone()
    with pytest.raises(ValueError, match="at most 16384 frames, got 16385"):
        decoder.decode(states, np.concatenate([codes_of(5)] * 2))
    assert states[0].frames == 2 and torch.equal(states[0].kept, kept)
