"""The deploy config: how the two stages run.  No key is ignored: it acts, or it is refused with its path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from inference.messages import Sampling
from inference.schema import SchemaError, Section
from inference.strict_yaml import YamlError, load_yaml

# Values of our own keys where the file has none: what the published file, which knows none of them, means.
PUBLISHED_CHUNK_POLICY = "fixed"
PUBLISHED_DECODE = "windowed"
PUBLISHED_MATMUL_PRECISION = "highest"
PUBLISHED_PLACEMENT = "processes"

MOST_REPETITION_PENALTY = 2.0  # the field's upper bound; the logits are all but turned over by then
MOST_CHUNK_FRAMES = 25  # the wire protocol's upper bound of a chunk

_NO_REMOTE_CODE = "no code from a checkpoint is ever run"
_NO_ASYNC_CODEC = "a decode does not depend on another one's result, so there is nothing to launch ahead of"
_NOT_SAMPLED = "the codec does not sample, only the published value is taken"
_CODEC_SAMPLING = {
    "temperature": 0.0, "top_p": 1.0, "top_k": -1, "max_tokens": 65536, "seed": 42, "repetition_penalty": 1.0
}  # fmt: skip


class DeployConfigError(ValueError):
    """The file cannot be used.  `key`: the path of the entry ('' is the whole file), `reason`: what is wrong."""

    def __init__(self, file: Path, key: str, reason: str) -> None:
        super().__init__(f"{file}: {key}: {reason}" if key else f"{file}: {reason}")
        self.file, self.key, self.reason = file, key, reason


@dataclass(frozen=True, slots=True)
class ConnectorConfig:
    """How codes travel from stage 0 to stage 1, and how stage 1 decodes them.

    `chunk_policy` "whole" is `async_chunk: false`: one chunk, when the stream has ended.  `get_sleep_s`: longest sleep
    of the consumer between two looks.  `first_chunk_wait_s`, `chunk_wait_s`: how long stage 1 waits for the first chunk
    of a stream and for each later one.
    """

    chunk_policy: Literal["fixed", "adaptive", "whole"]
    initial_chunk_frames: int
    chunk_frames: int
    left_context_frames: int
    decode: Literal["stateful", "windowed"]
    codec_dtype: Literal["float32", "bfloat16", "float16"]
    codec_matmul_precision: Literal["highest", "tf32"]
    get_sleep_s: float
    first_chunk_wait_s: float
    chunk_wait_s: float


@dataclass(frozen=True, slots=True)
class StageConfig:
    """What both stages have.  `memory_utilization`: the share of its device's memory that the stage may allocate, its
    replicas on that device together.

    Stage 0: `max_num_seqs` sequences in a step, `max_model_len` positions a sequence.  Stage 1: `max_num_seqs` streams
    in a codec call, `max_model_len` frames of one stream and `max_num_batched_tokens` frames of all streams in it.
    `device_ids`: the stage's device in each replica.
    """

    max_num_seqs: int
    memory_utilization: float
    enforce_eager: bool
    max_model_len: int
    max_num_batched_tokens: int
    device_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ArConfig(StageConfig):
    """Stage 0.  `max_num_streams`: streams that may hold a KV slot, of which `max_num_seqs` run in a step.
    `async_scheduling`: a step is launched before the one before it is read."""

    max_num_streams: int
    async_scheduling: bool
    enable_prefix_caching: bool
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class CodecConfig(StageConfig):
    """Stage 1."""


@dataclass(frozen=True, slots=True)
class DeployConfig:
    """The whole file.  `ignore_eos`: no stream ends before its `max_new_tokens`, for measuring with random weights."""

    connector: ConnectorConfig
    ar: ArConfig
    codec: CodecConfig
    stage_placement: Literal["processes", "threads"]
    ignore_eos: bool

    @property
    def replicas(self) -> int:
        """Pairs of stages, each with the whole model."""
        return len(self.ar.device_ids)


def load_deploy_config(path: str | Path) -> DeployConfig:
    """Read and check a deploy file.  Raises DeployConfigError, naming the key and what is allowed."""
    file = Path(path)
    try:
        return _config(Section(load_yaml(file)))
    except OSError as error:
        raise DeployConfigError(file, "", f"cannot be read: {error.strerror}") from error
    except (SchemaError, YamlError) as error:
        raise DeployConfigError(file, error.path, error.reason) from error


def _config(top: Section) -> DeployConfig:
    async_chunk = top.flag("async_chunk")
    top.only("enable_chunked_prefill", False, "a prompt is always prefilled in one piece")
    name, connector = _connector(top.section("connectors"), async_chunk)
    stages = top.sections("stages")
    if len(stages) != 2:
        raise top.refuse("stages", f"must hold two stages, stage_id 0 and 1, got {len(stages)}")
    devices = _devices(stages)
    ar, codec = _ar_stage(stages[0], name, devices[0]), _codec_stage(stages[1], name, devices[1])
    _check_codec_room(stages[1], connector, ar, codec)
    config = DeployConfig(
        connector=connector,
        ar=ar,
        codec=codec,
        stage_placement=top.choice("stage_placement", ("processes", "threads"), PUBLISHED_PLACEMENT),
        ignore_eos=top.flag("ignore_eos", False),
    )
    top.finish()
    return config


def _connector(connectors: Section, async_chunk: bool) -> tuple[str, ConnectorConfig]:
    """The one connector, and the name by which the stages refer to it."""
    names = connectors.keys()
    if len(names) != 1:
        raise SchemaError(connectors.path, f"must hold exactly one connector, got {', '.join(names) or 'none'}")
    section = connectors.section(names[0])
    section.only("name", "SharedMemoryConnector", "there is no other connector between the stages")
    config = _connector_extra(section.section("extra"), async_chunk)
    section.finish()
    return names[0], config


def _connector_extra(extra: Section, async_chunk: bool) -> ConnectorConfig:
    if not extra.flag("codec_streaming") and async_chunk:
        reason = "must be true with async_chunk: true: a chunk decoded alone lacks its past"
        raise extra.refuse("codec_streaming", reason)
    policy = extra.choice("codec_chunk_policy", ("fixed", "adaptive"), PUBLISHED_CHUNK_POLICY)
    sleep_s = extra.number("connector_get_sleep_s", above=0, most=1)
    chunk_frames = extra.integer("codec_chunk_frames", 1, MOST_CHUNK_FRAMES)
    config = ConnectorConfig(
        chunk_policy=policy if async_chunk else "whole",
        initial_chunk_frames=extra.integer("initial_codec_chunk_frames", 1, chunk_frames),
        chunk_frames=chunk_frames,
        left_context_frames=extra.integer("codec_left_context_frames", 0),
        decode=extra.choice("codec_decode", ("stateful", "windowed"), PUBLISHED_DECODE),
        codec_dtype=extra.choice("audio8_tts_codec_dtype", ("float32", "bfloat16", "float16")),
        codec_matmul_precision=extra.choice("codec_matmul_precision", ("highest", "tf32"), PUBLISHED_MATMUL_PRECISION),
        get_sleep_s=sleep_s,
        first_chunk_wait_s=sleep_s * extra.integer("connector_get_max_wait_first_chunk", 1),
        chunk_wait_s=sleep_s * extra.integer("connector_get_max_wait", 1),
    )
    extra.finish()
    return config


def _ar_stage(stage: Section, connector: str, device_ids: tuple[int, ...]) -> ArConfig:
    common = _common(stage, 0, device_ids)
    _one_link(stage, "output_connectors", "to_stage_1", connector)
    width = common["max_num_seqs"]
    config = ArConfig(
        **common,
        max_num_streams=stage.integer("max_num_streams", width, default=width),
        async_scheduling=stage.flag("async_scheduling"),
        enable_prefix_caching=stage.flag("enable_prefix_caching"),
        sampling=_sampling(stage.section("default_sampling_params"), common["max_model_len"]),
    )
    stage.finish()
    return config


def _codec_stage(stage: Section, connector: str, device_ids: tuple[int, ...]) -> CodecConfig:
    common = _common(stage, 1, device_ids)
    _one_link(stage, "input_connectors", "from_stage_0", connector)
    stage.only("enable_prefix_caching", False, "the codec has no prompt whose prefix could be kept")
    stage.only("async_scheduling", False, _NO_ASYNC_CODEC)
    _codec_sampling(stage.section("default_sampling_params"))
    stage.finish()
    return CodecConfig(**common)


def _common(stage: Section, stage_id: int, device_ids: tuple[int, ...]) -> dict[str, Any]:
    """The fields of StageConfig."""
    stage.only("stage_id", stage_id, "the stages are listed in order, stage 0 (slow AR) and stage 1 (codec)")
    stage.only("trust_remote_code", False, _NO_REMOTE_CODE)
    positions = stage.integer("max_model_len", 1)
    batched = stage.integer("max_num_batched_tokens", 1)
    if batched < positions:
        reason = f"must be at least max_model_len ({positions}) while chunked prefill is off, got {batched}"
        raise stage.refuse("max_num_batched_tokens", reason)
    return dict(
        max_num_seqs=stage.integer("max_num_seqs", 1),
        memory_utilization=stage.number("gpu_memory_utilization", above=0, most=1),
        enforce_eager=stage.flag("enforce_eager"),
        max_model_len=positions,
        max_num_batched_tokens=batched,
        device_ids=device_ids,
    )


def _devices(stages: list[Section]) -> list[tuple[int, ...]]:
    """Of both stages the device in each replica; one id serves them all."""
    ids = [_device_ids(stage) for stage in stages]
    replicas = max(map(len, ids))
    for stage, own in zip(stages, ids, strict=True):
        if len(own) not in (1, replicas):
            reason = f"must be {replicas} device ids, as many as the other stage has, or one for all, got {len(own)}"
            raise stage.refuse("devices", reason)
    return [own if len(own) == replicas else own * replicas for own in ids]


def _device_ids(stage: Section) -> tuple[int, ...]:
    """`devices` is a string of ids, as published."""
    value = stage.text("devices")
    ids = [part.strip() for part in value.split(",")]
    if not all(part.isascii() and part.isdecimal() for part in ids):
        raise stage.refuse("devices", f'must be device ids such as "0" or "0,1", got "{value}"')
    return tuple(map(int, ids))


def _one_link(stage: Section, key: str, link: str, connector: str) -> None:
    links = stage.section(key)
    links.only(link, connector, "it must name the connector defined under connectors")
    links.finish()


def _sampling(params: Section, max_model_len: int) -> Sampling:
    sampling = Sampling(
        temperature=params.number("temperature", above=0),
        top_k=params.integer("top_k", 1),
        top_p=params.number("top_p", above=0, most=1),
        seed=params.integer("seed", 0, 2**63 - 1),
        max_new_tokens=params.integer("max_tokens", 1, max_model_len),
        repetition_penalty=params.number("repetition_penalty", above=0, most=MOST_REPETITION_PENALTY),
    )
    params.finish()
    return sampling


def _codec_sampling(params: Section) -> None:
    for key, value in _CODEC_SAMPLING.items():
        params.only(key, value, _NOT_SAMPLED)
    params.finish()


def _check_codec_room(stage: Section, connector: ConnectorConfig, ar: ArConfig, codec: CodecConfig) -> None:
    """One codec call must hold the longest input that a stream can bring."""
    if connector.chunk_policy == "whole":
        need, what = ar.max_model_len, "max_model_len of stage 0, as async_chunk: false decodes a stream in one call"
    elif connector.decode == "windowed":
        need = connector.left_context_frames + connector.chunk_frames
        what = "codec_left_context_frames + codec_chunk_frames"
    else:
        need, what = connector.chunk_frames, "codec_chunk_frames"
    if codec.max_model_len < need:
        raise stage.refuse("max_model_len", f"must be at least {need} ({what}), got {codec.max_model_len}")
