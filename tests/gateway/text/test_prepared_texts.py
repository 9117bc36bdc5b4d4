"""100 texts as a language model writes them: what the model is given for each, and that a recogniser understands it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from embedded import samples, speak
from recogniser import recogniser, transcript, word_errors
from recordings import RATE

from gateway.text.segmenter import Segmenter

GROUPS: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).parents[2] / "data" / "speakable_texts.json").read_text()
)
TEXTS = {text: words for group in GROUPS.values() for text, words in group.items()}
VOICES = ("aria", "clara", "juno", "milo")
GOOD_WER = 0.08  # as of the held-out sentences, which have neither figures nor markup


def test_there_are_100() -> None:
    assert len(TEXTS) == 100


@pytest.mark.parametrize("text", TEXTS)
def test_what_the_model_is_given(text: str) -> None:
    segmenter = Segmenter("none")
    segments = [*itertools.chain.from_iterable(segmenter.push(letter, 0.0) for letter in text), *segmenter.flush()]
    assert "".join(segment.text for segment in segments) == text
    assert " ".join(filter(None, (segment.spoken for segment in segments))) == TEXTS[text]


@pytest.mark.slow
async def test_the_words_are_recognised(tmp_path_factory) -> None:
    heard, _ = await speak(list(zip(TEXTS, itertools.cycle(VOICES))))
    judge = recogniser(tmp_path_factory.mktemp("whisper"))
    understood = [transcript(judge, samples(audio), RATE) for audio in heard]
    rates = {text: word_errors([words], [got]) for (text, words), got in zip(TEXTS.items(), understood, strict=True)}
    wer = word_errors(list(TEXTS.values()), understood)
    print(f"word error rate of 100 prepared texts: {100 * wer:.2f} %, {list(rates.values()).count(0)} without an error")
    assert wer <= GOOD_WER
    assert [text for text, rate in rates.items() if rate > 0.6] == []
