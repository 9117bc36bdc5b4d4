"""The deploy config: both files mean what they say; every other value of a key acts or is refused by its path."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference.deploy import (
    ArConfig,
    CodecConfig,
    ConnectorConfig,
    DeployConfig,
    DeployConfigError,
    load_deploy_config,
)
from inference.messages import Sampling

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "tests/data/seed_deploy.yaml"
SHIPPED = ROOT / "deploy/audio8_tts.yaml"
EXTRA = "connectors.connector_of_shared_memory.extra"
MISSING = object()

PUBLISHED_CONFIG = DeployConfig(
    connector=ConnectorConfig(
        chunk_policy="fixed",
        initial_chunk_frames=4,
        chunk_frames=25,
        left_context_frames=25,
        decode="windowed",
        codec_dtype="float32",
        codec_matmul_precision="highest",
        get_sleep_s=0.01,
        first_chunk_wait_s=30.0,
        chunk_wait_s=3.0,
    ),
    ar=ArConfig(
        max_num_seqs=4,
        memory_utilization=0.2,
        enforce_eager=False,
        max_model_len=2048,
        max_num_batched_tokens=2048,
        device_ids=(0,),
        max_num_streams=4,
        enable_prefix_caching=False,
        async_scheduling=False,
        sampling=Sampling(temperature=0.7, top_k=50, top_p=0.9, seed=42, max_new_tokens=1024),
    ),
    codec=CodecConfig(
        max_num_seqs=1,
        memory_utilization=0.1,
        enforce_eager=True,
        max_model_len=2048,
        max_num_batched_tokens=2048,
        device_ids=(0,),
    ),
    stage_placement="processes",
    ignore_eos=False,
)


def steps(path: str) -> list[str | int]:
    """`stages[0].devices` -> ["stages", 0, "devices"]."""
    return [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", path)]


def holder(tree: Any, path: str) -> tuple[Any, str | int]:
    *way, last = steps(path)
    for step in way:
        tree = tree[step]
    return tree, last


def changed(tmp_path: Path, *changes: tuple[str, Any]) -> Path:
    """The published file with the values at some paths replaced, or taken out."""
    tree = yaml.safe_load(PUBLISHED.read_text())
    for path, value in changes:
        place, key = holder(tree, path)
        if value is MISSING:
            del place[key]
        else:
            place[key] = value
    file = tmp_path / "deploy.yaml"
    file.write_text(yaml.safe_dump(tree, sort_keys=False))
    return file


def refused(file: Path) -> DeployConfigError:
    with pytest.raises(DeployConfigError) as caught:
        load_deploy_config(file)
    assert str(caught.value).startswith(str(file))
    return caught.value


def all_keys(tree: Any, path: str = "") -> list[str]:
    """The paths of all mapping entries."""
    if isinstance(tree, list):
        return [key for index, item in enumerate(tree) for key in all_keys(item, f"{path}[{index}]")]
    if not isinstance(tree, dict):
        return []
    paths = {key: f"{path}.{key}" if path else key for key in tree}
    return [found for key, value in tree.items() for found in (paths[key], *all_keys(value, paths[key]))]


def test_the_published_file_means_the_published_way():
    assert load_deploy_config(PUBLISHED) == PUBLISHED_CONFIG


def test_the_shipped_file_differs_only_where_it_says_so():
    ours = load_deploy_config(SHIPPED)
    assert ours.connector.chunk_policy == "adaptive" and ours.connector.decode == "stateful"
    assert ours.ar.max_num_streams == 16 and ours.ar.enable_prefix_caching
    connector = replace(ours.connector, chunk_policy="fixed", decode="windowed", codec_matmul_precision="highest")
    assert ours.ar.enforce_eager
    ar = replace(ours.ar, max_num_streams=4, enable_prefix_caching=False, enforce_eager=False)
    assert not ours.codec.enforce_eager and ours.connector.codec_matmul_precision == "tf32"
    codec = replace(ours.codec, enforce_eager=True)
    assert replace(ours, connector=connector, ar=ar, codec=codec) == PUBLISHED_CONFIG


SUPPORTED = [
    ("stage_placement", "threads", lambda c: c.stage_placement == "threads"),
    ("ignore_eos", True, lambda c: c.ignore_eos is True),
    ("async_chunk", False, lambda c: c.connector.chunk_policy == "whole"),
    (f"{EXTRA}.codec_chunk_policy", "adaptive", lambda c: c.connector.chunk_policy == "adaptive"),
    (f"{EXTRA}.codec_chunk_policy", "fixed", lambda c: c.connector.chunk_policy == "fixed"),
    (f"{EXTRA}.codec_decode", "stateful", lambda c: c.connector.decode == "stateful"),
    (f"{EXTRA}.codec_decode", "windowed", lambda c: c.connector.decode == "windowed"),
    (f"{EXTRA}.codec_matmul_precision", "tf32", lambda c: c.connector.codec_matmul_precision == "tf32"),
    (f"{EXTRA}.audio8_tts_codec_dtype", "bfloat16", lambda c: c.connector.codec_dtype == "bfloat16"),
    (f"{EXTRA}.audio8_tts_codec_dtype", "float16", lambda c: c.connector.codec_dtype == "float16"),
    (f"{EXTRA}.codec_chunk_frames", 4, lambda c: c.connector.chunk_frames == 4),
    (f"{EXTRA}.initial_codec_chunk_frames", 25, lambda c: c.connector.initial_chunk_frames == 25),
    (f"{EXTRA}.initial_codec_chunk_frames", 1, lambda c: c.connector.initial_chunk_frames == 1),
    (f"{EXTRA}.codec_left_context_frames", 0, lambda c: c.connector.left_context_frames == 0),
    (f"{EXTRA}.connector_get_sleep_s", 0.5, lambda c: c.connector.get_sleep_s == 0.5),
    (f"{EXTRA}.connector_get_sleep_s", 1, lambda c: c.connector.first_chunk_wait_s == 3000),
    (f"{EXTRA}.connector_get_max_wait_first_chunk", 5, lambda c: c.connector.first_chunk_wait_s == 0.05),
    (f"{EXTRA}.connector_get_max_wait", 7, lambda c: c.connector.chunk_wait_s == 0.07),
    ("stages[0].max_num_seqs", 2, lambda c: (c.ar.max_num_seqs, c.ar.max_num_streams) == (2, 2)),
    ("stages[0].max_num_streams", 32, lambda c: (c.ar.max_num_seqs, c.ar.max_num_streams) == (4, 32)),
    ("stages[0].gpu_memory_utilization", 1, lambda c: c.ar.memory_utilization == 1.0),
    ("stages[0].enforce_eager", True, lambda c: c.ar.enforce_eager),
    ("stages[0].enable_prefix_caching", True, lambda c: c.ar.enable_prefix_caching),
    ("stages[0].max_model_len", 1100, lambda c: c.ar.max_model_len == 1100),
    ("stages[0].max_num_batched_tokens", 4096, lambda c: c.ar.max_num_batched_tokens == 4096),
    ("stages[0].devices", "3", lambda c: c.ar.device_ids == (3,)),
    ("stages[0].default_sampling_params.temperature", 1, lambda c: c.ar.sampling.temperature == 1.0),
    ("stages[0].default_sampling_params.top_k", 1, lambda c: c.ar.sampling.top_k == 1),
    ("stages[0].default_sampling_params.top_p", 1.0, lambda c: c.ar.sampling.top_p == 1.0),
    ("stages[0].default_sampling_params.max_tokens", 2048, lambda c: c.ar.sampling.max_new_tokens == 2048),
    ("stages[0].default_sampling_params.seed", 0, lambda c: c.ar.sampling.seed == 0),
    ("stages[1].max_num_seqs", 8, lambda c: c.codec.max_num_seqs == 8),
    ("stages[1].gpu_memory_utilization", 0.5, lambda c: c.codec.memory_utilization == 0.5),
    ("stages[1].enforce_eager", False, lambda c: not c.codec.enforce_eager),
    ("stages[1].max_model_len", 50, lambda c: c.codec.max_model_len == 50),
    ("stages[1].max_num_batched_tokens", 4096, lambda c: c.codec.max_num_batched_tokens == 4096),
    ("stages[1].devices", "1", lambda c: c.codec.device_ids == (1,)),
    ("stages[1].default_sampling_params.temperature", 0, lambda c: True),
]


@pytest.mark.parametrize(("path", "value", "acts"), SUPPORTED, ids=lambda item: str(item)[-40:])
def test_a_supported_value_acts(tmp_path, path, value, acts):
    assert acts(load_deploy_config(changed(tmp_path, (path, value))))


REFUSED = [
    ("async_chunk", "yes please", "true or false"),
    ("enable_chunked_prefill", True, "one piece"),
    ("stage_placement", "gpu", "processes or threads"),
    ("ignore_eos", 1, "true or false"),
    (f"{EXTRA}.codec_streaming", False, "async_chunk: true"),
    (f"{EXTRA}.codec_chunk_policy", "whole", "fixed or adaptive"),
    (f"{EXTRA}.codec_decode", "offline", "stateful or windowed"),
    (f"{EXTRA}.codec_matmul_precision", "high", "highest or tf32"),
    (f"{EXTRA}.audio8_tts_codec_dtype", "float64", "float32 or bfloat16 or float16"),
    (f"{EXTRA}.codec_chunk_frames", 26, "from 1 to 25"),
    (f"{EXTRA}.codec_chunk_frames", 0, "from 1 to 25"),
    (f"{EXTRA}.initial_codec_chunk_frames", 26, "from 1 to 25"),
    (f"{EXTRA}.initial_codec_chunk_frames", 4.0, "whole number"),
    (f"{EXTRA}.codec_left_context_frames", -1, "at least 0"),
    (f"{EXTRA}.connector_get_sleep_s", 0, "above 0"),
    (f"{EXTRA}.connector_get_sleep_s", float("nan"), "above 0"),
    (f"{EXTRA}.connector_get_sleep_s", "10ms", "a number"),
    (f"{EXTRA}.connector_get_max_wait_first_chunk", 0, "at least 1"),
    (f"{EXTRA}.connector_get_max_wait", True, "whole number"),
    ("connectors.connector_of_shared_memory.name", "MooncakeConnector", "no other connector"),
    ("stages[0].stage_id", 1, "must be 0"),
    ("stages[0].max_num_seqs", 0, "at least 1"),
    ("stages[0].max_num_seqs", "4", 'got "4"'),
    ("stages[0].max_num_streams", 3, "at least 4"),
    ("stages[0].gpu_memory_utilization", 0, "above 0"),
    ("stages[0].gpu_memory_utilization", 1.1, "at most 1"),
    ("stages[0].enforce_eager", None, "true or false"),
    ("stages[0].trust_remote_code", True, "no code from a checkpoint"),
    ("stages[0].enable_prefix_caching", "auto", "true or false"),
    ("stages[0].async_scheduling", 1, "true or false"),
    ("stages[0].max_model_len", 0, "at least 1"),
    ("stages[0].max_num_batched_tokens", 2047, "max_model_len (2048)"),
    ("stages[0].devices", "0,", "device ids"),
    ("stages[0].devices", 0, "must be a string"),
    ("stages[0].devices", "cuda:0", "device ids"),
    ("stages[0].output_connectors.to_stage_1", "another", "connector_of_shared_memory"),
    ("stages[0].default_sampling_params.temperature", 0.0, "above 0"),
    ("stages[0].default_sampling_params.top_k", -1, "at least 1"),
    ("stages[0].default_sampling_params.top_p", 1.5, "at most 1"),
    ("stages[0].default_sampling_params.max_tokens", 2049, "from 1 to 2048"),
    ("stages[0].default_sampling_params.seed", -1, "from 0"),
    ("stages[0].default_sampling_params.repetition_penalty", 2.5, "above 0 and at most 2"),
    ("stages[1].stage_id", 0, "must be 1"),
    ("stages[1].max_num_seqs", -1, "at least 1"),
    ("stages[1].max_num_streams", 4, "unknown key"),
    ("stages[1].gpu_memory_utilization", "10%", "a number"),
    ("stages[1].enforce_eager", "true", "true or false"),
    ("stages[1].trust_remote_code", True, "no code from a checkpoint"),
    ("stages[1].enable_prefix_caching", True, "no prompt"),
    ("stages[1].async_scheduling", True, "must be false"),
    ("stages[1].max_model_len", 49, "at least 50"),
    ("stages[1].max_num_batched_tokens", 1, "max_model_len (2048)"),
    ("stages[1].devices", "-1", "device ids"),
    ("stages[1].input_connectors.from_stage_0", "another", "connector_of_shared_memory"),
    ("stages[1].default_sampling_params.temperature", 0.7, "does not sample"),
    ("stages[1].default_sampling_params.top_p", 0.9, "does not sample"),
    ("stages[1].default_sampling_params.top_k", 50, "does not sample"),
    ("stages[1].default_sampling_params.max_tokens", 1024, "does not sample"),
    ("stages[1].default_sampling_params.seed", 43, "does not sample"),
    ("stages[1].default_sampling_params.repetition_penalty", 1.1, "does not sample"),
]


@pytest.mark.parametrize(("path", "value", "reason"), REFUSED, ids=lambda item: str(item)[-40:])
def test_an_unsupported_value_is_refused_with_its_path_and_the_reason(tmp_path, path, value, reason):
    error = refused(changed(tmp_path, (path, value)))
    assert error.key == path
    assert reason in error.reason


KEYS = all_keys(yaml.safe_load(PUBLISHED.read_text()))


def test_every_key_of_the_files_has_a_refused_value():
    """No key of the table is forgotten above; mappings and the list are covered by the tests of missing keys."""
    tree = yaml.safe_load(SHIPPED.read_text())
    leaves = {path for path in all_keys(tree) if not isinstance(holder(tree, path)[0][steps(path)[-1]], (dict, list))}
    assert leaves == {path for path, _, _ in REFUSED} - {"stages[1].max_num_streams"}


@pytest.mark.parametrize("path", KEYS)
def test_a_published_key_that_is_missing_is_named(tmp_path, path):
    error = refused(changed(tmp_path, (path, MISSING)))
    if path == "connectors.connector_of_shared_memory":
        assert (error.key, error.reason) == ("connectors", "must hold exactly one connector, got none")
    else:
        assert (error.key, error.reason) == (path, "is missing")


@pytest.mark.parametrize("path", [path for path in KEYS if "." in path] + ["anything"])
def test_an_unknown_key_is_named_at_every_level(tmp_path, path):
    where = path.rpartition(".")[0]
    unknown = f"{where}.frobnicate" if where else "frobnicate"
    error = refused(changed(tmp_path, (unknown, 1)))
    if where == "connectors":
        assert error.key == "connectors"
    else:
        assert (error.key, error.reason[:11]) == (unknown, "unknown key")


def test_a_misspelt_key_is_told_the_right_one(tmp_path):
    error = refused(changed(tmp_path, ("stages[0].max_num_stream", 4)))
    assert error.reason == "unknown key (did you mean max_num_streams?)"


@pytest.mark.parametrize("path", ["connectors", EXTRA, "stages[0]", "stages[1].default_sampling_params"])
@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_a_mapping_that_is_none_is_named(tmp_path, path, value):
    error = refused(changed(tmp_path, (path, value)))
    assert error.key == path and "must be a mapping" in error.reason


@pytest.mark.parametrize("stages", [{}, [], [{}], [{}, {}, {}]])
def test_there_are_two_stages(tmp_path, stages):
    assert refused(changed(tmp_path, ("stages", stages))).key == "stages"


def test_several_devices_are_replicas_and_one_serves_them_all(tmp_path):
    both = changed(tmp_path, ("stages[0].devices", "2, 0"), ("stages[1].devices", "1,1"))
    config = load_deploy_config(both)
    assert (config.ar.device_ids, config.codec.device_ids, config.replicas) == ((2, 0), (1, 1), 2)
    config = load_deploy_config(changed(tmp_path, ("stages[1].devices", "0,1,2")))
    assert (config.ar.device_ids, config.codec.device_ids, config.replicas) == ((0, 0, 0), (0, 1, 2), 3)


def test_stages_of_unequally_many_devices_are_refused(tmp_path):
    error = refused(changed(tmp_path, ("stages[0].devices", "0,1,2"), ("stages[1].devices", "0,1")))
    assert error.key == "stages[1].devices" and "must be 3 device ids" in error.reason and "got 2" in error.reason


def test_two_connectors_are_refused(tmp_path):
    error = refused(changed(tmp_path, ("connectors.second", {})))
    assert error.key == "connectors" and "second" in error.reason


def test_a_whole_decode_needs_room_in_stage_1_and_no_streaming_codec(tmp_path):
    whole = ("async_chunk", False)
    assert load_deploy_config(changed(tmp_path, whole, (f"{EXTRA}.codec_streaming", False)))
    assert refused(changed(tmp_path, whole, ("stages[1].max_model_len", 2047))).key == "stages[1].max_model_len"


def test_a_stateful_decode_needs_room_for_a_chunk_only(tmp_path):
    stateful = (f"{EXTRA}.codec_decode", "stateful")
    assert load_deploy_config(changed(tmp_path, stateful, ("stages[1].max_model_len", 25))).codec.max_model_len == 25
    assert refused(changed(tmp_path, stateful, ("stages[1].max_model_len", 24))).key == "stages[1].max_model_len"


@pytest.mark.parametrize(
    ("line", "instead", "key"),
    [
        ("async_chunk: true", "async_chunk: true\nasync_chunk: true", "async_chunk"),
        ("    max_num_seqs: 1\n", "    max_num_seqs: 1\n    max_num_seqs: 2\n", "stages[1].max_num_seqs"),
        ("      seed: 42\n", "      seed: 42\n      seed: 7\n", "stages[0].default_sampling_params.seed"),
    ],
)
def test_a_key_given_twice_is_refused_with_its_path(tmp_path, line, instead, key):
    file = tmp_path / "twice.yaml"
    file.write_text(PUBLISHED.read_text().replace(line, instead, 1))
    error = refused(file)
    assert error.key == key and "twice" in error.reason


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("", "", "must be a mapping, got nothing"),
        ("a: [", "", "not valid YAML"),
        ("a: 1\n---\nb: 2\n", "", "not valid YAML"),
        ("a: &x {b: 1}\nc: *x\n", "c", "aliases"),
        ("a: &x [*x]\n", "a[0]", "aliases"),
        ("a: {1: 2}\n", "a.1", "must be a string"),
        ("a: !!python/object:os.system {}\n", "a", "not a plain value"),
        ("a: !!python/name:os.system x\n", "a", "not a plain value"),
        ("a: 2001-99-99\n", "a", "not a plain value"),
    ],
)
def test_what_is_not_plain_yaml_is_refused(tmp_path, text, key, reason):
    file = tmp_path / "odd.yaml"
    file.write_text(text)
    error = refused(file)
    assert error.key == key and reason in error.reason


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    assert "cannot be read" in refused(tmp_path / "nowhere.yaml").reason
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\xfa")
    assert "not valid YAML" in refused(tmp_path / "binary.yaml").reason
