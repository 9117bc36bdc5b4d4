"""Limits of a connection, told to the client in `session.ready`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, text in characters (code points), times in seconds."""

    message_bytes: int = 128 * 1024
    config_message_bytes: int = 8 * 1024 * 1024
    text_characters: int = 8000
    pending_flushes: int = 256
    contexts: int = 8
    waiting_contexts: int = 32
    unsent_audio_s: float = 30.0
    write_stall_s: float = 10.0
    idle_s: float = 300.0
    context_idle_s: float = 120.0
    ping_interval_s: float = 20.0
    ping_timeout_s: float = 20.0
    handshake_s: float = 10.0
    connections: int = 512
    key_connections: int = 128
    key_contexts: int = 256
    remembered_ids: int = 1024
    voice_bytes: int = 16 * 1024 * 1024
    voices: int = 256
