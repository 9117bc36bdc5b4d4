"""What the server part of the gateway is set to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gateway.keys import ApiKeys
from inference.messages import Sampling
from protocol.limits import Limits


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults of a request come from the deploy config.

    `allowed_origins` and `allowed_hosts`: see `gateway.http.origin.OriginPolicy`.  `keys`: a client needs one of them;
    None: it needs none.  `voices_dir`: where uploaded voices are kept; None: in memory alone.  `voice_aliases`: from
    other names to those of voices.  `prebuffer_ms`: how much players are advised to hold before they begin.  `tick_s`:
    how often idle clocks, pings and progress are looked at.  `close_s`: how long a client may take to answer a close.
    """

    sampling: Sampling = field(default_factory=Sampling)
    initial_chunk_frames: int = 4
    chunk_frames: int = 25
    limits: Limits = field(default_factory=Limits)
    allowed_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    keys: ApiKeys | None = None
    voices_dir: Path | None = None
    voice_aliases: Mapping[str, str] = field(default_factory=dict)
    prebuffer_ms: int = 100
    send_buffer_bytes: int = 128 * 1024
    waiting_frames: int = 1024
    retry_after_ms: int = 1000
    tick_s: float = 0.25
    close_s: float = 5.0
