"""Loading an Audio8 checkpoint: a directory or a hub id."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from inference.codec import Codec
from inference.config import ArkttsConfig
from inference.dual_ar import DualAR
from inference.messages import ModelInfo, Reference, VoiceInfo
from inference.prompt import PromptBuilder

EMBEDDED = Path(__file__).parent / "embedded"
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_IGNORED = ("freqs_cis", "causal_mask")  # buffers that codec.pth may carry; they are computed here
_HUB_FILES = ["*.json", "*.safetensors", "*.pth", "voices/*.json"]


class CheckpointError(Exception):
    """The checkpoint cannot be used; the message names each file, key or tensor that is wrong."""


@dataclass(frozen=True, slots=True, eq=False)
class Voice:
    """A named voice: what is told of it, and the reference that makes it."""

    info: VoiceInfo
    reference: Reference


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint's directory and configuration; weights are read on demand, each by the stage that needs it."""

    directory: Path
    config: ArkttsConfig
    name: str

    @classmethod
    def open(cls, model: str | None) -> Checkpoint:
        """`model`: a directory, a hub id, or None for the embedded voice.  Raises CheckpointError."""
        directory = EMBEDDED if model is None else _locate(model)
        file = directory / "config.json"
        if not file.is_file():
            raise CheckpointError(f"{directory} holds no config.json")
        values = json.loads(file.read_text())
        if values.get("model_type") != "arktts":
            raise CheckpointError(f"{file}: model_type is {values.get('model_type')!r}, only 'arktts' is supported")
        try:
            config = ArkttsConfig.from_dict(values)
        except ValueError as error:
            raise CheckpointError(f"{file}: {error}") from error
        return cls(
            directory, config, values.get("_name_or_path") or (model or "audio8-embedded").rstrip("/").split("/")[-1]
        )

    def prompt_builder(self) -> PromptBuilder:
        """Raises CheckpointError without a tokenizer."""
        file = self.directory / "tokenizer.json"
        if not file.is_file():
            raise CheckpointError(f"{self.directory} holds no tokenizer.json")
        return PromptBuilder(file, self.config)

    def load_dual_ar(self, dtype: torch.dtype | str, device: torch.device | str = "cpu") -> DualAR:
        """The language model in `dtype` ("float32", "bfloat16", "float16"), ready for inference."""
        model = DualAR(self.config).to(_DTYPES.get(dtype, dtype))
        _fill(model, _language_tensors(self.directory), "model.safetensors")
        return model.to(device).freeze()

    def load_codec(self, dtype: torch.dtype | str, device: torch.device | str = "cpu") -> Codec:
        """The codec in `dtype`, weight norm folded."""
        model = Codec(self.config).to(_DTYPES.get(dtype, dtype))
        name, tensors = _codec_tensors(self.directory, self.config.codec_filename)
        _fill(model, fold_weight_norm(tensors), name)
        return model.to(device).eval().requires_grad_(False)

    def voices(self) -> dict[str, Voice]:
        """The named voices, by name; the first is the default."""
        files = sorted((self.directory / "voices").glob("*.json"))
        voices = [_voice(file) for file in files]
        voices.sort(key=lambda voice: not voice[1])  # the one marked as default first, the rest by name
        return {voice.info.name: voice for voice, _ in voices}

    def info(self) -> ModelInfo:
        """What the gateway has to know."""
        config = self.config
        return ModelInfo(
            self.name,
            config.codec_sample_rate,
            config.codec_frame_size,
            config.num_codebooks,
            config.max_seq_len,
            tuple(voice.info for voice in self.voices().values()),
        )


def _locate(model: str) -> Path:
    if Path(model).is_dir():
        return Path(model)
    from huggingface_hub import snapshot_download  # deferred: not needed for a directory, and slow to import

    try:
        return Path(snapshot_download(model, allow_patterns=_HUB_FILES))
    except Exception as error:  # the hub's client has no common base class
        reason = str(error).partition("\n")[0]  # advice for its own command line follows
        raise CheckpointError(f"{model!r} is neither a directory nor a model that the hub gives: {reason}") from error


def _language_tensors(directory: Path) -> dict[str, Tensor]:
    index = directory / "model.safetensors.index.json"
    if index.is_file():
        files = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    else:
        files = ["model.safetensors"]
    tensors: dict[str, Tensor] = {}
    for file in files:
        if not (directory / file).is_file():
            raise CheckpointError(f"{directory} holds no {file}")
        tensors.update(load_file(directory / file))
    return tensors


def _codec_tensors(directory: Path, filename: str) -> tuple[str, dict[str, Tensor]]:
    safe = directory / "codec.safetensors"
    if safe.is_file():
        return safe.name, load_file(safe)
    file = directory / filename
    if not file.is_file():
        raise CheckpointError(f"{directory} holds neither {filename} nor codec.safetensors")
    state = torch.load(file, map_location="cpu", weights_only=True)
    state = state.get("state_dict", state)
    tensors = {key.removeprefix("generator."): value for key, value in state.items()}
    return file.name, {key: value for key, value in tensors.items() if not key.endswith(_IGNORED)}


def fold_weight_norm(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Magnitude and direction pairs, in the new and the legacy naming, become one weight: g * v / |v|.

    The norm is over all axes but the first (for a transposed convolution that is the input channel).
    """
    folded = dict(tensors)
    for magnitude_key in tensors:
        if magnitude_key.endswith(".parametrizations.weight.original0"):
            direction_key = magnitude_key[:-1] + "1"
            key = magnitude_key.removesuffix(".parametrizations.weight.original0") + ".weight"
        elif magnitude_key.endswith(".weight_g"):
            direction_key = magnitude_key[:-1] + "v"
            key = magnitude_key.removesuffix("_g")
        else:
            continue
        if direction_key not in tensors:
            raise CheckpointError(f"{magnitude_key} has no {direction_key} beside it")
        magnitude, direction = folded.pop(magnitude_key).float(), folded.pop(direction_key).float()
        axes = tuple(range(1, direction.ndim))
        folded[key] = magnitude * direction / direction.norm(dim=axes, keepdim=True)
    return folded


def _fill(model: nn.Module, tensors: dict[str, Tensor], file: str) -> None:
    """Copy tensors into the model; names each that is missing, unexpected or misshapen."""
    expected = model.state_dict()
    faults = [f"{key} is missing" for key in expected if key not in tensors]
    faults += [f"{key} is unexpected" for key in tensors if key not in expected]
    faults += [
        f"{key} has shape {list(tensors[key].shape)}, config.json asks for {list(value.shape)}"
        for key, value in expected.items()
        if key in tensors and tensors[key].shape != value.shape
    ]
    if faults:
        raise CheckpointError(f"{file}: " + "; ".join(faults))
    model.load_state_dict(tensors)


def _voice(file: Path) -> tuple[Voice, bool]:
    values = json.loads(file.read_text())
    missing = [key for key in ("name", "language", "description", "text", "codes") if key not in values]
    if missing:
        raise CheckpointError(f"{file}: missing {', '.join(missing)}")
    info = VoiceInfo(values["name"], values["language"], values["description"])
    reference = Reference(values["text"], np.asarray(values["codes"], dtype=np.uint16))
    return Voice(info, reference), bool(values.get("default"))
