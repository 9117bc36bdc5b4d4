"""However long a text without borders is, each piece of it leaves the model room to speak."""

from __future__ import annotations

import pytest

from gateway.text.segmenter import Segmenter
from inference.checkpoint import Checkpoint

TEXTS = {"words": "lorem " * 1000, "one word": "x" * 6000, "ideographs": "漢字" * 3000, "four bytes": "𐌰" * 6000}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
@pytest.mark.parametrize("granularity", ["none", "clause"])
def test_a_text_without_borders_fits_in_pieces(granularity, text):
    checkpoint = Checkpoint.open(None)
    builder = checkpoint.prompt_builder()
    segmenter = Segmenter(granularity)
    segments = segmenter.push(text, 0.0) + segmenter.flush()
    assert "".join(segment.text for segment in segments) == text
    for voice in checkpoint.voices().values():
        prompts = [builder.build(segment.spoken, voice.reference) for segment in segments if segment.spoken]
        longest = max(prompt.packed.shape[1] for prompt in prompts)
        assert longest <= checkpoint.config.max_seq_len - 1024  # max_tokens of the deploy file
