"""What loads, and how clearly the rest is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from checkpoints import small_codec, write_checkpoint
from parity import DATA, real_config
from safetensors.torch import load_file, save_file
from transformers import AutoConfig

from inference.checkpoint import Checkpoint, CheckpointError, fold_weight_norm
from inference.codec import Codec
from inference.dual_ar import DualAR


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path)


def test_the_published_layout_is_ours():
    shapes = json.loads((DATA / "real_shapes.json").read_text())
    with torch.device("meta"):
        language, codec = DualAR(real_config()), Codec(real_config())
    assert {name: list(value.shape) for name, value in language.state_dict().items()} == dict(shapes["main"]["tensors"])
    assert sum(value.numel() for value in language.state_dict().values()) == 601_159_424
    folded = {name: torch.empty(shape, device="meta") for name, shape in shapes["codec"]["tensors"]}
    assert {k: v.shape for k, v in fold_weight_norm(folded).items()} == {
        k: v.shape for k, v in codec.state_dict().items()
    }


def test_transformers_knows_the_config(directory):
    config = AutoConfig.from_pretrained(directory)
    assert config.model_type == "arktts" and config.dim == 32 and config.codec_decoder_dim == 32


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes_of_the_file(directory, dtype):
    file = directory / "model.safetensors"
    save_file({key: value.to(dtype) for key, value in load_file(file).items()}, file)
    model = Checkpoint.open(str(directory)).load_dual_ar("float32")
    assert model.embeddings.weight.dtype == torch.float32 and torch.isfinite(model.rope).all()


def test_shards(directory):
    checkpoint = Checkpoint.open(str(directory))
    single = checkpoint.load_dual_ar("float32").state_dict()
    tensors = load_file(directory / "model.safetensors")
    names = sorted(tensors)
    files = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
    for file, part in files.items():
        save_file({name: tensors[name] for name in part}, directory / file)
    weight_map = {name: file for file, part in files.items() for name in part}
    (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (directory / "model.safetensors").unlink()
    for name, value in checkpoint.load_dual_ar("float32").state_dict().items():
        assert torch.equal(value, single[name])


def test_codec_pth_with_weight_norm_and_prefixes(directory):
    """The form of the published codec.pth: nested, prefixed, with buffers, both namings of weight norm."""
    codec = small_codec()
    state = {"generator.quantizer.pre_module.freqs_cis": torch.zeros(1), "generator.causal_mask": torch.zeros(1)}
    for name, value in codec.state_dict().items():
        direction = value * 3.0 if name.endswith("conv.weight") or "_proj.weight" in name else None
        if direction is None:
            state[f"generator.{name}"] = value
            continue
        magnitude = value.norm(dim=tuple(range(1, value.ndim)), keepdim=True)
        stem = name.removesuffix(".weight")
        legacy = "_proj" in name
        pair = ("weight_g", "weight_v") if legacy else tuple(f"parametrizations.weight.original{i}" for i in (0, 1))
        state[f"generator.{stem}.{pair[0]}"], state[f"generator.{stem}.{pair[1]}"] = magnitude, direction
    (directory / "codec.safetensors").unlink()
    torch.save({"state_dict": state}, directory / "codec.pth")
    loaded = Checkpoint.open(str(directory)).load_codec("float32").state_dict()
    for name, value in codec.state_dict().items():
        torch.testing.assert_close(loaded[name], value, atol=1e-6, rtol=1e-5)


def test_codec_pth_never_runs_code(directory):
    (directory / "codec.safetensors").unlink()
    torch.save({"state_dict": Path("x")}, directory / "codec.pth")
    with pytest.raises(Exception, match=r"(?i)weights.only"):
        Checkpoint.open(str(directory)).load_codec("float32")


def test_each_fault_is_named(directory):
    file = directory / "model.safetensors"
    tensors = load_file(file)
    tensors.pop("norm.weight")
    tensors["layers.9.extra"] = torch.zeros(1)
    tensors["fast_norm.weight"] = torch.zeros(5)
    save_file(tensors, file)
    with pytest.raises(CheckpointError) as error:
        Checkpoint.open(str(directory)).load_dual_ar("float32")
    for part in ("norm.weight is missing", "layers.9.extra is unexpected", "fast_norm.weight has shape [5]", "[32]"):
        assert part in str(error.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "codec.safetensors", "tokenizer.json"])
def test_missing_files_are_named(directory, name):
    (directory / name).unlink()
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        checkpoint = Checkpoint.open(str(directory))
        checkpoint.load_dual_ar("float32"), checkpoint.load_codec("float32"), checkpoint.prompt_builder()


def test_another_model_type_is_refused(directory):
    (directory / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(CheckpointError, match="model_type is 'llama', only 'arktts'"):
        Checkpoint.open(str(directory))


def test_contradicting_ids_are_refused(directory):
    values = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**values, "semantic_end_id": 600}))
    message = r"semantic_begin_id..semantic_end_id spans 204 ids, codebook_size is 256"
    with pytest.raises(CheckpointError, match=message):
        Checkpoint.open(str(directory))


def test_voices(directory):
    voices = Checkpoint.open(str(directory)).voices()
    assert list(voices) == ["ada", "bert"] and voices["ada"].reference.codes.shape == (10, 12)
    assert voices["ada"].reference.codes.dtype == np.uint16
    (directory / "voices" / "ada.json").write_text("{}")
    with pytest.raises(CheckpointError, match="missing name, language, description, text, codes"):
        Checkpoint.open(str(directory)).voices()


def test_a_magnitude_without_its_direction_is_refused():
    with pytest.raises(CheckpointError, match="has no"):
        fold_weight_norm({"a.weight_g": torch.ones(1)})
