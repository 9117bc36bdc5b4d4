"""Speaks the held-out sentences with a checkpoint, for a recogniser to judge: WAV files and a list of them."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import scipy.io.wavfile
import torch

from inference.checkpoint import Checkpoint
from inference.generate import generate
from inference.messages import Reference, Sampling
from inference.runner import ARRunner
from inference.training.codes import Codes
from inference.training.mel import RATE, whole_frames
from inference.training.teacher import Teacher
from inference.training.texts import heldout

LONGEST_FRAMES = 400


def sampled(checkpoint: Checkpoint, texts: list[str], references: list[Reference | None], seed: int) -> list[np.ndarray]:
    """Codes uint16 [Q, T] of each text, sampled with the model's defaults."""
    prompts = checkpoint.prompt_builder()
    packed = [prompts.build(text, reference).packed for text, reference in zip(texts, references, strict=True)]
    runner = ARRunner(checkpoint.load_dual_ar("float32"), width=8, slots=8)
    made = []
    for start in range(0, len(packed), 8):
        some = packed[start : start + 8]
        samplings = [Sampling(seed=seed + start + i, max_new_tokens=LONGEST_FRAMES) for i in range(len(some))]
        made += generate(runner, some, samplings)
    return made


def write(folder: Path, texts: list[str], waves: list[np.ndarray]) -> None:
    """`folder`/NNN.wav and `folder`/list.tsv with each file and its text."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{index:03d}.wav" for index in range(len(texts))]
    for file, wave in zip(files, waves, strict=True):
        scipy.io.wavfile.write(file, RATE, (np.clip(wave, -1, 1) * 32767).astype(np.int16))
    (folder / "list.tsv").write_text("".join(f"{file}\t{text}\n" for file, text in zip(files, texts, strict=True)))


def main() -> None:
    """Teacher, resynthesis of the teacher's codes, encoded and decoded teacher, samples with and without a voice."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("codes", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--sets", nargs="*", default=["teacher", "resynthesis", "encoded", "voices", "plain"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sentences", type=int, default=40, help="the first so many of the held-out sentences")
    arguments = parser.parse_args()
    checkpoint, codes = Checkpoint.open(str(arguments.checkpoint)), Codes.load(arguments.codes)
    texts = heldout()[: arguments.sentences]
    codec = checkpoint.load_codec("float32")

    @torch.inference_mode()
    def decoded(frames: np.ndarray) -> np.ndarray:
        return codec.decode(torch.from_numpy(frames.astype(np.int64))[None])[0].numpy() if frames.size else np.zeros(1)

    @torch.inference_mode()
    def encoded(wave: np.ndarray) -> np.ndarray:
        return codec.encode(torch.from_numpy(whole_frames(wave))[None])[0].numpy()

    voices = checkpoint.voices()
    names = [list(voices)[index % len(voices)] for index in range(len(texts))]
    spoken: list[np.ndarray] = []
    if {"teacher", "resynthesis", "encoded"} & set(arguments.sets):
        teacher = Teacher()
        spoken = [
            teacher.speak(text, name, 1.0, np.random.default_rng(index)).audio
            for index, (text, name) in enumerate(zip(texts, names, strict=True))
        ]
    makers = {
        "teacher": lambda: spoken,
        "resynthesis": lambda: [decoded(codes.encode(codes.components(wave)).T) for wave in spoken],
        "encoded": lambda: [decoded(encoded(wave)) for wave in spoken],
        "voices": lambda: [
            *map(decoded, sampled(checkpoint, texts, [voices[name].reference for name in names], arguments.seed))
        ],
        "plain": lambda: [*map(decoded, sampled(checkpoint, texts, [None] * len(texts), arguments.seed))],
    }
    for name in arguments.sets:
        write(arguments.output / name, texts, makers[name]())


if __name__ == "__main__":
    main()
