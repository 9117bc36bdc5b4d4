"""How a gateway is to be started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gateway.assets import default_voices_dir
from protocol.limits import Limits

SHUTDOWN_GRACE_S = 5.0  # so that all is over in the ten seconds that Docker leaves to a service


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What `audio8-gateway serve` was told.

    `model` is a checkpoint directory or a hub id; None means the embedded voice.  `device` is "auto", "cpu" or "cuda";
    `log_level` a level name of the `logging` module, in lower case; `api_keys_file`: see `gateway.keys.load_keys`;
    `allowed_origins` and `allowed_hosts`: see `gateway.http.origin.OriginPolicy`; `allow_anonymous`: other machines may
    connect although there are no keys; `tls_certificate` and `tls_key`: see `gateway.http.listening.tls_context`;
    `voices_dir`: where uploaded voices are kept, None: in memory alone; `voice_aliases`: from other names to theirs;
    `shutdown_grace_s`: how long open contexts may go on after a signal; `limits`: see `protocol.limits`.
    """

    model: str | None
    deploy_config: Path
    host: str
    port: int
    device: str
    log_level: str
    api_keys_file: Path | None = None
    allow_anonymous: bool = False
    allowed_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    voices_dir: Path | None = field(default_factory=default_voices_dir)
    voice_aliases: Mapping[str, str] = field(default_factory=dict)
    shutdown_grace_s: float = SHUTDOWN_GRACE_S
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What `audio8-gateway bench` was told.

    `realtime`: texts are typed at `characters_per_s`, and a listener who has heard the end asks again.  `words` of each
    text, unless `text_file` has one a line.  `request_rate` a second, None: as many as `concurrency` allows.  `voice`,
    `sample_rate` (Hz), `seed` (of texts, arrivals and speech) and `api_key` as in SayOptions.  `output`: JSON, `plot`:
    PNG, None: neither.
    """

    url: str
    concurrency: int = 4
    prompts: int = 20
    realtime: bool = False
    characters_per_s: float = 60.0
    request_rate: float | None = None
    warmups: int = 0
    words: int = 30
    text_file: Path | None = None
    voice: str | None = None
    sample_rate: int | None = None
    seed: int = 0
    output: Path | None = None
    plot: Path | None = None
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class SayOptions:
    """What `audio8-gateway say` was told.

    `text` None: read from standard input.  `output` None: play.  `voice` None: the gateway's default.  `sample_rate` in
    Hz, None: the model's own.  `api_key` None: none is sent.
    """

    url: str
    text: str | None = None
    output: Path | None = None
    voice: str | None = None
    sample_rate: int | None = None
    api_key: str | None = field(default=None, repr=False)
