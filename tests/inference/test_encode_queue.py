"""Recordings become codes piece by piece: the same codes, and no listener waits for it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checkpoints import small_codec

from inference.checkpoint import Checkpoint
from inference.codec import Codec
from inference.encode_queue import PIECE_FRAMES, EncodeQueue
from inference.messages import Encode, Encoded


@pytest.fixture(scope="module")
def codec() -> Codec:
    return small_codec()


def noise(samples: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-0.5, 0.5, samples).astype(np.float32)


def whole(codec: Codec, samples: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        return codec.encode(torch.from_numpy(samples)[None])[0].numpy()


def finished(recordings: EncodeQueue) -> list[Encoded]:
    done = []
    while recordings:
        if (encoded := recordings.step()) is not None:
            done.append(encoded)
    return done


@pytest.mark.parametrize("samples", [1, 2048, 4 * 2048, 4 * 2048 + 1, 60 * 2048 - 7])
def test_pieces_give_the_codes_of_the_whole(codec, samples):
    recordings = EncodeQueue(codec)
    recordings.add(Encode(7, noise(samples)))
    (encoded,) = finished(recordings)
    assert encoded.request_id == 7 and encoded.codes.dtype == np.uint16
    np.testing.assert_array_equal(encoded.codes, whole(codec, noise(samples)))


def test_the_embedded_codec_does_so_too():
    """But for frames that stand between two entries: sums are not rounded alike in calls of different length."""
    checkpoint = Checkpoint.open(None)
    codec = checkpoint.load_codec("float32")
    reference = next(iter(checkpoint.voices().values())).reference
    with torch.inference_mode():
        samples = codec.decode(torch.from_numpy(reference.codes.astype(np.int64))[None])[0].numpy()
    recordings = EncodeQueue(codec)
    recordings.add(Encode(1, samples))
    same = (finished(recordings)[0].codes == whole(codec, samples)).all(axis=0)
    assert same.mean() > 0.9


def test_in_order_of_arrival_and_in_short_pieces(codec):
    recordings = EncodeQueue(codec)
    for request_id in (1, 2):
        recordings.add(Encode(request_id, noise(2 * PIECE_FRAMES * 2048, request_id)))
    assert recordings.step() is None and len(recordings) == 2 and recordings.piece_s > 0
    assert [encoded.request_id for encoded in finished(recordings)] == [1, 2]


def test_what_nobody_waits_for_is_not_encoded(codec):
    recordings = EncodeQueue(codec)
    for request_id in (1, 2, 3):
        recordings.add(Encode(request_id, noise(2 * PIECE_FRAMES * 2048, request_id)))
    recordings.step()
    for request_id in (1, 3, 9):
        recordings.cancel(request_id)
    (encoded,) = finished(recordings)
    assert encoded.request_id == 2
    np.testing.assert_array_equal(encoded.codes, whole(codec, noise(2 * PIECE_FRAMES * 2048, 2)))
