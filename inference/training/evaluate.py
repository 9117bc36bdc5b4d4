"""Speaks the held-out sentences with a checkpoint, for a recogniser to judge: WAV files and a list of them."""

from __future__ import annotations

import argparse
import wave
from pathlib import Path

import numpy as np
import torch

from inference.checkpoint import Checkpoint
from inference.codec import Codec
from inference.generate import generate
from inference.messages import Reference, Sampling
from inference.runner import ARRunner
from inference.training.codes import Codes
from inference.training.mel import RATE, whole_frames
from inference.training.teacher import Teacher
from inference.training.texts import heldout

LONGEST_FRAMES = 400
WIDTH = 8
SETS = {
    "teacher": "the teacher's own speech",
    "resynthesis": "the teacher's speech, coded by the construction and decoded",
    "encoded": "the teacher's speech, coded by the codec's encoder and decoded",
    "voices": "sampled, with the reference of a named voice: the sentences take the voices in turn",
    "plain": "sampled without a reference",
}


def sampled(
    checkpoint: Checkpoint, texts: list[str], references: list[Reference | None], seed: int
) -> list[np.ndarray]:
    """Codes uint16 [Q, T] of each text, sampled with the model's defaults."""
    prompts = checkpoint.prompt_builder()
    packed = [prompts.build(text, reference).packed for text, reference in zip(texts, references, strict=True)]
    runner = ARRunner(checkpoint.load_dual_ar("float32"), width=WIDTH, slots=WIDTH)
    made = []
    for start in range(0, len(packed), WIDTH):
        some = packed[start : start + WIDTH]
        samplings = [Sampling(seed=seed + start + i, max_new_tokens=LONGEST_FRAMES) for i in range(len(some))]
        made += generate(runner, some, samplings)
    return made


def spoken_by_teacher(texts: list[str], names: list[str]) -> list[np.ndarray]:
    """The teacher's waveform of each text in the voice of that name."""
    teacher, waves = Teacher(), []
    for index, (text, name) in enumerate(zip(texts, names, strict=True)):
        utterance = teacher.speak(text, name, 1.0, np.random.default_rng(index))
        if utterance is None:
            raise ValueError(f"the teacher does not speak {text!r}")
        waves.append(utterance.audio)
    return waves


@torch.inference_mode()
def decoded(codec: Codec, frames: np.ndarray) -> np.ndarray:
    """Codes [Q, T] -> waveform float32 [N]; no frames are one silent sample, which a WAV file can hold."""
    if not frames.size:
        return np.zeros(1, np.float32)
    return codec.decode(torch.from_numpy(frames.astype(np.int64))[None])[0].numpy()


@torch.inference_mode()
def encoded(codec: Codec, samples: np.ndarray) -> np.ndarray:
    """Waveform float32 [N] -> codes [Q, T] by the trained encoder."""
    return codec.encode(torch.from_numpy(whole_frames(samples))[None])[0].numpy()


def write(folder: Path, texts: list[str], waves: list[np.ndarray]) -> None:
    """`folder`/NNN.wav and `folder`/list.tsv with each file and its text."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for index, (text, samples) in enumerate(zip(texts, waves, strict=True)):
        path = folder / f"{index:03d}.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
        lines.append(f"{path}\t{text}\n")
    (folder / "list.tsv").write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Speak the held-out sentences in several ways, each a folder of WAV files."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("codes", type=Path)
    parser.add_argument("output", type=Path)
    told = "; ".join(f"{name}: {what}" for name, what in SETS.items())
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS), help=told)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sentences", type=int, default=40, help="the first so many of the held-out sentences")
    arguments = parser.parse_args()
    checkpoint, codes = Checkpoint.open(str(arguments.checkpoint)), Codes.load(arguments.codes)
    codec, voices = checkpoint.load_codec("float32"), checkpoint.voices()
    texts = heldout()[: arguments.sentences]
    names = [list(voices)[index % len(voices)] for index in range(len(texts))]
    spoken: list[np.ndarray] = []
    if {"teacher", "resynthesis", "encoded"} & set(arguments.sets):
        spoken = spoken_by_teacher(texts, names)
    for name in arguments.sets:
        if name == "teacher":
            waves = spoken
        elif name == "resynthesis":
            waves = [decoded(codec, codes.encode(codes.components(samples)).T) for samples in spoken]
        elif name == "encoded":
            waves = [decoded(codec, encoded(codec, samples)) for samples in spoken]
        else:
            references = [voices[voice].reference if name == "voices" else None for voice in names]
            waves = [decoded(codec, frames) for frames in sampled(checkpoint, texts, references, arguments.seed)]
        write(arguments.output / name, texts, waves)


if __name__ == "__main__":
    main()
