"""The teacher speaks: worker processes turn texts into shards of codes, phone labels and, at first, audio.

The teacher is `hibari-tts` (one voice, 24 kHz).  Four voices are made of it by scaling its f0 and by playing its
samples at another rate, which moves the formants.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one worker a core; read when numpy loads its BLAS
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import onnx
import onnxruntime
import soxr
from hibari import Hibari, dsp

from inference.checkpoint import Checkpoint
from inference.training.codes import Codes
from inference.training.mel import FRAME, RATE, whole_frames
from inference.training.shards import LABELS, VOICES, Coding, Utterance, Voice, save_shard
from inference.training.texts import pass_texts

LONGEST_S = 14.0
LOUDNESS, PEAK = 0.085, 0.85
"""Effective value of what is heard, and the largest sample."""
FIRST_SHARDS, FIRST_UTTERANCES, UTTERANCES = 3, 30, 150
"""Utterances of a shard: the first ones are small, so that the trainings can begin."""
_HOP = dsp.HOP
_LEAD_HOPS, _TAIL_HOPS, _TAIL_HOPS_CLAUSE = 3, 14, 8
"""Hops of 12.5 ms kept before the first sound, after a sentence and after a clause: the pauses of joined segments."""


class Teacher:
    """hibari with its phone durations as one more output."""

    _DURATIONS = "/Cast_32_output_0"  # this release's graph; the release is pinned

    def __init__(self):
        self._front = Hibari(threads=1)
        model = onnx.load(self._front.model_path)
        model.graph.output.append(onnx.helper.make_tensor_value_info(self._DURATIONS, onnx.TensorProto.INT64, None))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])

    def speak(self, text: str, voice: str, pace: float, rng: np.random.Generator) -> Utterance | None:
        """None where the teacher finds nothing to speak, or the speech is too long."""
        shape, waves, labels = VOICES[voice], [], []
        for phonemes in self._front.phonemize(text):
            ids = self._front.ids(phonemes)
            if len(ids) > 2:
                wave, label = self._sentence(ids, shape, pace, rng)
                waves.append(wave)
                labels.append(label)
        if not waves:
            return None
        trimmed = _trim(np.concatenate(waves), np.concatenate(labels), text.endswith((",", ";", ":")))
        if trimmed is None or len(trimmed[0]) > LONGEST_S * dsp.SR * shape.rate:
            return None
        audio = whole_frames(soxr.resample(trimmed[0], dsp.SR * shape.rate, RATE).astype(np.float32))
        return Utterance(text, voice, audio, _labels_of_frames(trimmed[1], len(audio) // FRAME, shape.rate))

    def _sentence(
        self, ids: list[int], shape: Voice, pace: float, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Wave [n * hop] at the teacher's nominal rate and the phone id of each hop, [n]."""
        speed = pace / shape.rate**0.85  # a lower voice, played slower, still speaks at about the same pace
        inputs = {"ids": np.asarray([ids], np.int64), "speed": np.asarray([speed], np.float32)}
        *spectra, f0, durations = self._session.run(None, inputs)
        wave = dsp.synth(*(part[0] for part in spectra), f0[0] * shape.pitch, rng)
        durations = durations.reshape(-1)
        hops_each = max(1, round(spectra[0].shape[2] / max(1, durations.sum())))
        label = np.repeat(np.asarray(ids, np.uint8), durations * hops_each)
        hops = min(len(label), len(wave) // _HOP)
        return wave[: hops * _HOP], label[:hops]


def _trim(wave: np.ndarray, label: np.ndarray, clause: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """Silence at both ends cut to the wanted length, loudness set, edges faded.  None where nothing is heard."""
    level = np.sqrt((wave.reshape(len(label), _HOP) ** 2).mean(1) + 1e-12)
    heard = np.flatnonzero(level > max(level.max() * 0.015, 1e-3))
    if len(heard) < 4:
        return None
    tail = _TAIL_HOPS_CLAUSE if clause else _TAIL_HOPS
    start, end = max(0, heard[0] - _LEAD_HOPS), heard[-1] + 1 + tail
    short = max(0, end - len(label))
    wave = np.pad(wave[start * _HOP : end * _HOP], (0, short * _HOP))
    label, level = np.pad(label[start:end], (0, short)), level[start:end]
    loudness = np.sqrt((level[level > level.max() * 0.1] ** 2).mean())
    wave = wave * min(LOUDNESS / loudness, PEAK / max(1e-4, np.abs(wave).max()))
    fade = np.linspace(0, 1, 240, dtype=np.float32)
    wave[:240] *= fade
    wave[-240:] *= fade[::-1]
    return wave, label


def _labels_of_frames(label: np.ndarray, frames: int, rate: float) -> np.ndarray:
    """Phone ids by hop -> [frames, LABELS], each at the middle of its part of the frame."""
    seconds = (np.arange(frames * LABELS) + 0.5) * FRAME / LABELS / RATE
    hops = (seconds * dsp.SR * rate / _HOP).astype(np.int64)
    return np.pad(label, (0, 1))[hops.clip(max=len(label))].reshape(frames, LABELS)


def utterances(teacher: Teacher, worker: int, workers: int, first_pass: int) -> Iterator[Utterance]:
    """Without end: pass after pass over the texts, every pass with other voices, paces and cuts."""
    names, shares = list(VOICES), [voice.share for voice in VOICES.values()]
    number = first_pass
    while True:
        rng = random.Random(number * 7919 + worker)
        for text in pass_texts(number, worker, workers):
            voice, pace = rng.choices(names, shares)[0], 1.0 + rng.uniform(-0.06, 0.1)
            utterance = teacher.speak(text, voice, pace, np.random.default_rng(rng.getrandbits(32)))
            if utterance is not None:
                yield utterance
        number += 1


def main() -> None:
    """One worker: write shards until the time is over."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("output", type=Path, help="folder for the shards")
    parser.add_argument("--codes", type=Path, help="file of the codes; without it only audio is written")
    parser.add_argument("--checkpoint", type=Path, help="folder with config.json and tokenizer.json, beside --codes")
    parser.add_argument("--worker", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--first-pass", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="time to work")
    parser.add_argument(
        "--audio-seconds", type=float, default=0.0, help="write audio too, until it is this long or a little longer"
    )
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    coding = None
    if arguments.codes:
        coding = Coding(Codes.load(arguments.codes), Checkpoint.open(str(arguments.checkpoint)).prompt_builder())
    arguments.output.mkdir(parents=True, exist_ok=True)
    shard: list[Utterance] = []
    shards, spoken_s, saved_s, written = 0, 0.0, 0.0, 0
    for utterance in utterances(Teacher(), arguments.worker, arguments.workers, arguments.first_pass):
        shard.append(utterance)
        spoken_s += len(utterance.audio) / RATE
        over = time.monotonic() > end
        if len(shard) >= (FIRST_UTTERANCES if shards < FIRST_SHARDS else UTTERANCES) or over:
            written += len(shard)
            name = f"p{arguments.first_pass:02d}w{arguments.worker:02d}_{shards:05d}.npz"
            save_shard(arguments.output / name, shard, coding, coding is None or saved_s < arguments.audio_seconds)
            shard, shards, saved_s = [], shards + 1, spoken_s
        if over:
            break
    print(f"worker {arguments.worker}: {written} utterances, {spoken_s / 3600:.2f} h", flush=True)


if __name__ == "__main__":
    main()
