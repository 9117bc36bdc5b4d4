"""What crosses the seams between the gateway process and the two stages.

A *stream* is the speech of one text segment: one AR sequence and one codec state.  `stream_id` is drawn by the gateway,
unique for the life of the process.  Times are seconds of CLOCK_MONOTONIC, which all processes of one machine share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters of one stream.

    `repetition_penalty`: the logit of a semantic code that the stream has already said is divided by it if positive,
    multiplied if negative; 1.0 changes nothing.
    """

    temperature: float = 0.7
    top_k: int = 50
    top_p: float = 0.9
    seed: int = 42
    max_new_tokens: int = 1024
    repetition_penalty: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A voice to imitate: what was said, and its codes, uint16 [num_codebooks, T]."""

    text: str
    codes: np.ndarray


@dataclass(frozen=True, slots=True)
class VoiceInfo:
    """A named voice of the checkpoint."""

    name: str
    language: str
    description: str


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What the gateway has to know of the checkpoint."""

    name: str
    sample_rate: int
    frame_samples: int
    num_codebooks: int
    max_seq_len: int
    voices: tuple[VoiceInfo, ...]


# Gateway -> stage 0 --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Submit:
    """Speak one segment.  At most one of `voice` (a named one) and `reference` is given; neither: the model's choice.
    A chunk size of None is the deploy file's.

    `listener` is the number of the context whose segment this is, unique for the life of the process.  `segment_index`
    counts the segments of one context from 0 and separates their noise.  `dry_at` is the time at which the listener has
    nothing left to hear, None if it hears nothing yet.
    """

    stream_id: int
    text: str
    sampling: Sampling
    listener: int
    segment_index: int = 0
    voice: str | None = None
    reference: Reference | None = None
    initial_chunk_frames: int | None = None
    chunk_frames: int | None = None
    dry_at: float | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the stream without an answer.  Sent to both stages; of an `Encode`, by its `request_id`, to stage 1."""

    stream_id: int


@dataclass(frozen=True, slots=True)
class Credit:
    """Let the stream run (`granted`) or pause it where it is."""

    stream_id: int
    granted: bool


@dataclass(frozen=True, slots=True)
class Release:
    """The listener needs no more speech: its last segment is generated, or it has ended in whatever way."""

    listener: int


@dataclass(frozen=True, slots=True, eq=False)
class Keep:
    """A voice that is likely to be asked for: compute what its prompts begin with while there is nothing else to do."""

    reference: Reference


# Gateway -> stage 1 --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Encode:
    """Turn a recording into codes: float32 [n] at the model's sample rate, in −1…1.  `request_id` comes back."""

    request_id: int
    samples: np.ndarray


# Stages -> gateway ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Beat:
    """The stage's loop is alive, and will say so again within so many seconds."""

    stage_id: int
    within_s: float


@dataclass(frozen=True, slots=True)
class StageReady:
    """The stage has loaded and warmed up."""

    stage_id: int
    device: str
    model: ModelInfo


@dataclass(frozen=True, slots=True)
class StageStopped:
    """The stage cannot start or go on; its process ends."""

    stage_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class Started:
    """Stage 0 has prefilled the stream.  `queue_s`: seconds between submission and that prefill's begin."""

    stream_id: int
    text_tokens: int
    queue_s: float


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """Stage 0 has generated the last frame.

    `reason`: "done" (end token) or "max_length".  `codes`: uint16 [num_codebooks, frames].
    """

    stream_id: int
    reason: str
    codes: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class AudioChunk:
    """Stage 1 has decoded one chunk: float32 [frames * frame_samples].  The `last` one of a stream may be empty."""

    stream_id: int
    first_frame: int
    samples: np.ndarray
    last: bool


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Stage 1 has encoded a recording: uint16 [num_codebooks, ceil(n / frame_samples)]."""

    request_id: int
    codes: np.ndarray


@dataclass(frozen=True, slots=True)
class EncodeFailed:
    """Stage 1 could not encode a recording."""

    request_id: int
    message: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The stream has ended with an error; `code` is one of the wire protocol's."""

    stream_id: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ARReport:
    """What stage 0 has done since its last report, for the metrics; times are seconds.

    `steps`: (duration, streams in it) of each.  `frames`: those made.  `underruns`, `underrun_s`: how often, and how
    long, the slack of a stream was below 0.  `least_slack`: since the last report, None without a speaking stream.
    `slacks`: of the speaking streams, when last there were any.  As it stands now: `resident`, `waiting` and `paused`
    (without credit, wherever it is) streams, `listeners` that were taken on and how many would fit, and KV slots.
    """

    steps: tuple[tuple[float, int], ...]
    prefills: tuple[float, ...]
    frames: int
    underruns: int
    underrun_s: float
    least_slack: float | None
    resident: int
    waiting: int
    paused: int
    listeners: int
    capacity: float
    slots_used: int
    slots: int
    slacks: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CodecReport:
    """What stage 1 has done since its last report: seconds of each decoder call, and frames.

    As it stands now: open streams, and frames that wait for their decode.
    """

    decodes: tuple[float, ...]
    frames: int
    streams: int
    backlog_frames: int


StageReport = ARReport | CodecReport
"""Sent at most once a second while a stage has streams, and when it becomes idle."""
