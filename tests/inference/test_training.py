"""The recipe of the embedded voice: codes by construction, the codec that starts from them, corpus, shards, texts.

Nothing here needs the teacher; the whole plan at tiny size, which does, is a slow test.
"""

from __future__ import annotations

import gzip
import importlib.util
import subprocess
import sys
from copy import deepcopy
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from inference.checkpoint import Checkpoint
from inference.codec import Codec
from inference.config import ArkttsConfig
from inference.convolution import History
from inference.messages import Reference
from inference.training import language, vocoder
from inference.training.codes import Codes, build
from inference.training.corpus import Batch, Corpus
from inference.training.mel import BANDS, COLUMNS, FRAME, HOP, RATE, log_mel_frames, whole_frames
from inference.training.shards import LABELS, Coding, Utterance, has_audio, load_shard, save_shard
from inference.training.speech import Speech
from inference.training.start import component_scale, latent_table, start_codec
from inference.training.texts import DATA, LONGEST, heldout, pass_texts, sentences
from inference.training.widths import write_config

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = 64
PIECES = ("A first clause,", "and a second one.", "Short.", "The train leaves at 9:15.", "Why not?", "Done;")


def babble(seconds: float, seed: int) -> np.ndarray:
    """Something as varied as speech: a gliding tone whose loudness and brightness wander, with a little noise."""
    rng = np.random.default_rng(seed)
    count = int(seconds * RATE)
    knots = np.linspace(0, count, 12 + int(8 * seconds))

    def wander(low: float, high: float) -> np.ndarray:
        return np.interp(np.arange(count), knots, rng.uniform(low, high, len(knots)))

    phase = 2 * np.pi * np.cumsum(wander(90, 260)) / RATE
    tone = sum(np.sin(n * phase) * wander(0, 1) / n for n in range(1, 16))
    wave = 0.08 * tone * wander(0, 1) + 0.004 * rng.standard_normal(count)
    return whole_frames(wave.astype(np.float32))


@pytest.fixture(scope="module")
def codes() -> Codes:
    """The construction with small books: 80 seconds have not frames enough for large ones."""
    return build(torch.from_numpy(log_mel_frames(babble(80.0, seed=0))), entries=ENTRIES)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    directory = tmp_path_factory.mktemp("corpus") / "checkpoint"
    write_config(directory, tiny=True)
    return Checkpoint.open(str(directory))


@pytest.fixture(scope="module")
def codec(checkpoint: Checkpoint, codes: Codes) -> Codec:
    sizes = {"codec_semantic_codebook_size": ENTRIES, "codec_residual_codebook_size": ENTRIES}
    codec = Codec(ArkttsConfig(**{**checkpoint.config.to_dict(), **sizes})).eval().requires_grad_(False)
    start_codec(codec, codes)
    return codec


def utterances(count: int, voices: tuple[str, ...] = ("aria", "milo")) -> list[Utterance]:
    """Babble with texts; frames differ from one to the next, and some can be references."""
    made = []
    for index in range(count):
        audio = babble(0.3 + 0.45 * (index % 8), seed=100 + index)
        phones = np.full((len(audio) // FRAME, LABELS), 1 + index % 50, np.uint8)
        text = f"{PIECES[index % len(PIECES)]} Number {index}."
        made.append(Utterance(text, voices[index % len(voices)], audio, phones))
    return made


# Mel frames and codes ------------------------------------------------------------------------------------------------


def test_a_column_describes_its_own_samples() -> None:
    wave = np.zeros(4 * FRAME, np.float32)
    wave[2 * FRAME + HOP : 2 * FRAME + 2 * HOP] = np.random.default_rng(0).standard_normal(HOP)
    loudness = log_mel_frames(wave).reshape(-1, BANDS).mean(1)
    assert len(loudness) == 4 * COLUMNS
    assert loudness.argmax() == 2 * COLUMNS + 1


def test_every_further_book_leaves_less(codes: Codes) -> None:
    components = codes.components(babble(5.0, seed=1))
    coded = codes.encode(components)
    left = [
        float(np.square(components - Codes(codes.mean, codes.basis, codes.books[:used]).decode(coded)).sum())
        for used in range(1, len(codes.books) + 1)
    ]
    assert all(later < earlier for earlier, later in pairwise(left))
    assert left[-1] < 0.2 * float(np.square(components).sum())


def test_codes_survive_their_file(codes: Codes, tmp_path: Path) -> None:
    codes.save(tmp_path / "codes.npz")
    again = Codes.load(tmp_path / "codes.npz")
    for name in ("mean", "basis", "books"):
        np.testing.assert_array_equal(getattr(again, name), getattr(codes, name))


# The codec that training starts from ---------------------------------------------------------------------------------


def test_the_formats_quantizers_choose_the_constructed_codes(codec: Codec, codes: Codes) -> None:
    """They compare by angle, in float16 as stored; the construction by distance."""
    components = codes.components(babble(5.0, seed=2))
    latent = torch.zeros(1, codec.quantizer.post_module.norm.weight.shape[0], len(components))
    latent[0, : components.shape[1]] = torch.from_numpy(components.T) / component_scale(codes)
    semantic, left = codec.quantizer.semantic_quantizer.encode(latent)
    # The latent's constant channel is the encoder's to make; the first quantizer's bias takes it away again.
    residual, _ = codec.quantizer.quantizer.encode(left)
    chosen = torch.cat((semantic, residual), dim=1)[0].T.numpy()
    agree = chosen == codes.encode(components)
    assert agree[:, 0].mean() > 0.995
    assert agree.mean() > 0.97  # one near tie changes all the codes after it


def test_decoding_gives_the_components_and_the_constant(codec: Codec, codes: Codes) -> None:
    coded = codes.encode(codes.components(babble(1.0, seed=3)))
    latent = codec.quantizer.decode(torch.from_numpy(coded.T.astype(np.int64))[None])[0].T.numpy()
    width = codes.basis.shape[1]
    np.testing.assert_allclose(latent[:, :width] * component_scale(codes), codes.decode(coded), rtol=1e-4, atol=1e-3)
    assert np.ptp(latent[:, width]) == 0 and latent[0, width] > 5 * np.abs(latent[:, :width]).mean()
    assert not latent[:, width + 1 :].any()


def test_the_latent_table_sums_to_what_the_quantizers_decode(codec: Codec) -> None:
    coded = torch.randint(ENTRIES, (1, 10, 7), generator=torch.Generator().manual_seed(0))
    table = latent_table(codec)
    summed = sum(table[book, coded[0, book]] for book in range(10))
    torch.testing.assert_close(summed.T[None], codec.quantizer.decode(coded))


def test_the_decoder_starts_from_the_mel_columns(codec: Codec, codes: Codes) -> None:
    """Post module and upsampling at their start: the decoder's input is the coded mel, column by column."""
    coded = codes.encode(codes.components(babble(2.0, seed=4)))
    mel = (codes.decode(coded) @ codes.basis.T + codes.mean).reshape(-1, BANDS)
    quantizer = codec.quantizer
    latent = quantizer.decode(torch.from_numpy(coded.T.astype(np.int64))[None])
    seen = quantizer.upsample(quantizer.post_module(latent, History()), History())[0, :BANDS].T.numpy()
    assert len(seen) == len(mel)
    # Branches that begin small, and one mean for a frame's columns: near, not equal.
    line = np.polyfit(mel.ravel(), seen.ravel(), 1)
    error = seen - np.polyval(line, mel)
    assert np.square(error).mean() < 0.05 * np.square(seen - seen.mean()).mean()
    assert line[0] == pytest.approx(0.4, rel=0.1) and np.polyval(line, -4) == pytest.approx(0, abs=0.3)  # usual speech
    # The right column, not its neighbour.
    shifted = [float(np.corrcoef(np.roll(mel, by, 0).ravel(), seen.ravel())[0, 1]) for by in (-1, 0, 1)]
    assert np.argmax(shifted) == 1


# Shards and corpus ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shard(checkpoint: Checkpoint, codes: Codes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    coding = Coding(codes, checkpoint.prompt_builder())
    save_shard(folder / "p00w00_00000.npz", utterances(24), coding, with_audio=True)
    save_shard(folder / "p00w00_00001.npz", utterances(3), coding, with_audio=False)
    return folder


def test_a_shard_holds_what_was_said(shard: Path) -> None:
    said, held = utterances(24), load_shard(shard / "p00w00_00000.npz")
    assert bytes(held["texts"]).decode().split("\n") == [u.text for u in said]
    assert held["frames"].tolist() == [len(u.audio) // FRAME for u in said]
    assert held["audio"].size == held["frames"].sum() * FRAME
    assert has_audio(shard / "p00w00_00000.npz") and not has_audio(shard / "p00w00_00001.npz")


def examples_of(batch: Batch) -> list[np.ndarray]:
    """The packed examples of a batch [Q + 1, P], without padding."""
    found = []
    for packed, segments in zip(batch.packed.numpy(), batch.segments.numpy(), strict=True):
        found += [packed[:, segments == example] for example in np.unique(segments) if example >= 0]
    return found


def test_packed_examples_are_what_the_prompt_builder_makes(checkpoint: Checkpoint, shard: Path) -> None:
    config, prompts = checkpoint.config, checkpoint.prompt_builder()
    corpus = Corpus(config, prompts, 20_000, "cpu")
    assert corpus.take_new(shard, most=10) == 2 and corpus.take_new(shard, most=10) == 0
    held = load_shard(shard / "p00w00_00000.npz")
    pieces = np.split(held["codes"], np.cumsum(held["frames"])[:-1])
    said = [(u.text, u.voice, codes.T) for u, codes in zip(utterances(24), pieces, strict=True)]

    def example(text: str, codes: np.ndarray, reference: Reference | None) -> bytes:
        frames = np.concatenate((codes[:1].astype(np.int64) + config.semantic_begin_id, codes))
        end = np.zeros((len(frames), 1), np.int64)
        end[0] = config.eos_token_id
        return np.concatenate((prompts.build(text, reference).packed, frames, end), axis=1).tobytes()

    plain = {example(text, codes, None) for text, _, codes in said}
    guided = {
        example(text, codes, Reference(other, spoken))
        for text, voice, codes in said
        for other, of, spoken in said
        if of == voice
    }
    batch = corpus.batch(6, 512, np.random.default_rng(0))
    found = [packed.tobytes() for packed in examples_of(batch)]
    assert len(found) > 10 and set(found) <= plain | guided
    assert set(found) & plain and set(found) & guided


def test_positions_count_within_each_example(checkpoint: Checkpoint, shard: Path) -> None:
    corpus = Corpus(checkpoint.config, checkpoint.prompt_builder(), 20_000, "cpu")
    corpus.take_new(shard, most=10)
    batch = corpus.batch(4, 512, np.random.default_rng(1))
    for positions, segments in zip(batch.positions.numpy(), batch.segments.numpy(), strict=True):
        for example in np.unique(segments[segments >= 0]):
            assert positions[segments == example].tolist() == list(range((segments == example).sum()))


def test_a_full_corpus_says_so(checkpoint: Checkpoint, shard: Path) -> None:
    corpus = Corpus(checkpoint.config, checkpoint.prompt_builder(), 300, "cpu")
    with pytest.raises(ValueError, match="the corpus holds 300 rows"):
        corpus.take_new(shard, most=10)


def test_crops_lie_within_their_utterances(shard: Path) -> None:
    speech = Speech(codebooks=10, hours=0.05, device="cpu")
    assert speech.take_new(shard, most=10) == 1  # the other shard holds no audio
    held = load_shard(shard / "p00w00_00000.npz")
    ends = np.cumsum(held["frames"])
    first, begin = speech.crops(64, 16, np.random.default_rng(0))
    of = np.searchsorted(ends, first, side="right")
    np.testing.assert_array_equal(begin, (ends - held["frames"])[of])
    assert (first + 16 <= ends[of]).all() and (first == begin).any() and (first > begin).any()
    where = torch.from_numpy(first[:1])
    np.testing.assert_array_equal(speech.codes_at(where, 16)[0], held["codes"][first[0] : first[0] + 16])
    audio = held["audio"][first[0] * FRAME : (first[0] + 16) * FRAME] / 32767
    np.testing.assert_allclose(speech.audio_at(where, 16)[0], audio, atol=1e-6)


# Trainings -----------------------------------------------------------------------------------------------------------


def test_the_language_model_learns_on_from_its_file(checkpoint: Checkpoint, shard: Path, tmp_path: Path) -> None:
    """Each run makes one step at least, however slow the machine is: the speech is there already."""
    corpus = Corpus(checkpoint.config, checkpoint.prompt_builder(), 20_000, "cpu")
    corpus.take_new(shard, most=10)
    settings = language.Settings(rows=1, length=256, fast_frames=16, min_frames=1)
    steps = []
    for _ in range(2):
        training = language.Training(checkpoint, tmp_path / "language.pt", settings, "cpu")
        assert training.progress.steps == sum(steps)
        language.train(training, corpus, shard, seconds=1.0, planned_s=2.0)
        steps.append(training.progress.steps - sum(steps))
    assert min(steps) > 0


def test_the_decoder_learns_on_from_its_file(codec: Codec, shard: Path, tmp_path: Path) -> None:
    """First alone, then with its critics."""
    speech = Speech(codebooks=10, hours=0.05, device="cpu")
    speech.take_new(shard, most=10)
    rng, file = np.random.default_rng(0), tmp_path / "vocoder.pt"
    settings = vocoder.Settings(crops=1, crop_frames=8, alone_s=1.0)
    training = vocoder.Training(deepcopy(codec), 32, speech, file, settings, "cpu")
    assert set(training.step(rng, spent=0.0)) == {"mel", "spectrum"}
    training.progress.steps, training.progress.spent_s = 1, 2.0
    training.progress.save()
    again = vocoder.Training(deepcopy(codec), 32, speech, file, settings, "cpu")
    assert again.progress.steps == 1
    for name, value in again.vocoder.state_dict().items():
        torch.testing.assert_close(value, training.vocoder.state_dict()[name], rtol=0, atol=0)
    assert set(again.step(rng, spent=0.5)) == {"mel", "spectrum", "critics", "adversarial", "matching"}


# Texts ---------------------------------------------------------------------------------------------------------------


def test_no_held_out_sentence_is_trained_on() -> None:
    kept_back = set(heldout())
    assert len(kept_back) == 40
    assert not kept_back & set(sentences())
    assert not kept_back & set(islice(pass_texts(0, 0, 12), 5000))


def test_workers_share_a_pass_and_repeat_it() -> None:
    once, again, other = (list(islice(pass_texts(3, worker, 2), 200)) for worker in (0, 0, 1))
    assert once == again != other
    assert all(text.strip() and len(text) <= LONGEST + 10 and "{" not in text for text in once + other)


def test_the_sentences_come_with_their_licence() -> None:
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in (DATA / "LICENSE-WordNet.txt").read_text()
    with gzip.open(DATA / "sentences.txt.gz", "rt", encoding="utf-8") as lines:
        assert sum(1 for _ in lines) > 70_000


# The whole plan ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("hibari", "onnx", "onnxruntime")),
    reason="the teacher comes with the train extra: pip install 'audio8-gateway[train]'",
)
def test_the_tiny_plan_makes_a_checkpoint_that_decodes(tmp_path: Path) -> None:
    """All processes of the recipe, on a CPU: nothing intelligible, but a whole checkpoint."""
    build(torch.from_numpy(log_mel_frames(babble(300.0, seed=0)))).save(tmp_path / "codes.npz")
    command = [sys.executable, "-m", "inference.training.plan", tmp_path / "run", tmp_path / "codes.npz", "--tiny"]
    command += ["--seconds", 90, "--workers", 1, "--audio-hours", 0.15, "--alone-seconds", 20, "--encoder-seconds", 15]
    command += ["--language", "--rows", 2, "--fast-frames", 128, "--min-frames", 1000, "--capacity", 1_000_000]
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    made = Checkpoint.open(str(tmp_path / "run" / "checkpoint"))
    assert set(made.voices()) == {"aria", "clara", "milo", "juno"}
    reference = made.voices()["aria"].reference
    made.load_dual_ar("float32")
    with torch.inference_mode():
        wave = made.load_codec("float32").decode(torch.from_numpy(reference.codes.astype(np.int64))[None])
    assert wave.shape[-1] == reference.codes.shape[1] * FRAME and wave.isfinite().all()
