"""Writes the checkpoint: weights from the states of the trainings, and the named voices."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from inference.checkpoint import Checkpoint
from inference.codec import Codec
from inference.training.codes import Codes
from inference.training.start import start_codec
from inference.training.teacher import Teacher

REFERENCES = {
    "aria": ("A clear, calm woman.", "The morning train was late again, so we walked along the river."),
    "clara": ("A warm, unhurried woman.", "She packed a small lunch and took the path through the woods."),
    "milo": ("A low, steady voice.", "We should measure the boards twice before we cut any of them."),
    "juno": ("A bright, young voice.", "My neighbor grows yellow roses and very large tomatoes."),
}
"""Each voice's description and what its reference says.  The first voice is the default."""
_PLACES = {
    "post.": "quantizer.post_module.",
    "upsample.": "quantizer.upsample.",
    "decoder.": "decoder.",
    "pre.": "quantizer.pre_module.",
    "downsample.": "quantizer.downsample.",
    "encoder.": "encoder.",
}


def write_language(directory: Path, average: dict[str, Tensor]) -> None:
    """The language model in bfloat16."""
    tensors = {name: value.to(torch.bfloat16).cpu().contiguous() for name, value in average.items()}
    save_file(tensors, directory / "model.safetensors")


def write_codec(directory: Path, codes: Codes, averages: list[dict[str, Tensor]]) -> None:
    """The codec in float16: quantizers from the codes, the trained parts from `averages`."""
    codec = Codec(Checkpoint.open(str(directory)).config)
    start_codec(codec, codes)
    tensors = codec.state_dict()
    for average in averages:
        for name, value in average.items():
            place = next(prefix for prefix in _PLACES if name.startswith(prefix))
            tensors[_PLACES[place] + name.removeprefix(place)] = value
    halves = {name: value.to(torch.float16).cpu().contiguous() for name, value in tensors.items()}
    broken = [name for name, value in halves.items() if not value.isfinite().all()]
    if broken:
        raise ValueError(f"not finite in float16: {', '.join(broken)}")
    save_file(halves, directory / "codec.safetensors")


def write_voices(directory: Path, codes: Codes) -> None:
    """A reference of each voice, spoken by the teacher and coded by the construction."""
    folder, teacher = directory / "voices", Teacher()
    folder.mkdir(exist_ok=True)
    for index, (name, (description, text)) in enumerate(REFERENCES.items()):
        utterance = teacher.speak(text, name, 1.0, np.random.default_rng(index))
        spoken = codes.encode(codes.components(utterance.audio)).T.tolist()
        voice = {"name": name, "language": "en", "description": description, "text": text, "default": index == 0}
        (folder / f"{name}.json").write_text(json.dumps({**voice, "codes": spoken}) + "\n")


def main() -> None:
    """Complete a checkpoint folder that holds config.json and tokenizer.json."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("codes", type=Path)
    parser.add_argument("states", type=Path, help="folder with language.pt, vocoder.pt and, if trained, encoder.pt")
    arguments = parser.parse_args()

    def state(name: str) -> dict:
        return torch.load(arguments.states / f"{name}.pt", map_location="cpu", weights_only=True)

    codes = Codes.load(arguments.codes)
    write_language(arguments.checkpoint, state("language")["average"])
    trained = [state("vocoder")["average"]]
    if (arguments.states / "encoder.pt").exists():
        trained.append(state("encoder"))
    write_codec(arguments.checkpoint, codes, trained)
    write_voices(arguments.checkpoint, codes)


if __name__ == "__main__":
    main()
