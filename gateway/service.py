"""What all connections share, and how the server introduces itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.admission import Admission
from gateway.engine.engine import Engine
from gateway.metrics import ServerMetrics
from gateway.settings import Settings
from gateway.text.languages import known_languages
from gateway.voices.coder import VoiceCoder
from gateway.voices.voices import Voices
from inference.messages import ModelInfo
from protocol.config import ConfigRules, SessionConfig
from protocol.messages import Hello, Voice


@dataclass(frozen=True, slots=True)
class Service:
    """`clock`: seconds, of CLOCK_MONOTONIC as the engine's, unless a test turns it."""

    engine: Engine
    admission: Admission
    settings: Settings
    clock: Callable[[], float]
    metrics: ServerMetrics
    voices: Voices
    coder: VoiceCoder


def hello(info: ModelInfo, voices: Voices, settings: Settings, session_id: str) -> Hello:
    """What `session.ready` says of the model."""
    named = tuple(Voice(voice.name, voice.language, voice.description) for voice in voices.infos)
    return Hello(session_id, info.name, named, info.sample_rate, info.frame_samples, settings.prebuffer_ms)


def config_rules(info: ModelInfo, voices: Voices, settings: Settings) -> ConfigRules:
    """What a client may ask for: defaults of the deploy config, the first voice, the checkpoint's limits."""
    sampling = settings.sampling
    defaults = SessionConfig(
        voice=info.voices[0].name if info.voices else None,
        seed=sampling.seed,
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        max_new_tokens=sampling.max_new_tokens,
        initial_codec_chunk_frames=settings.initial_chunk_frames,
        codec_chunk_frames=settings.chunk_frames,
    )
    return ConfigRules(defaults, voices, known_languages(info.voices), info.max_seq_len, settings.voice_aliases)
