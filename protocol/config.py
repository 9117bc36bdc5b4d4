"""The session's configuration: its keys, defaults and rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace

from protocol.codes import ErrorCode, Refusal
from protocol.reference import AUDIO_KEY, TEXT_KEY, GivenReference, read_reference
from protocol.text import shown

SAMPLE_RATES = (8000, 16000, 22050, 24000, 32000, 44100, 48000)
NATIVE_RATE = 44100
BYTES_PER_SAMPLE = {"pcm": 2, "f32": 4, "mulaw": 1, "alaw": 1}
ENCODED_FORMATS = ("opus", "mp3", "aac", "flac", "wav")  # one file for a whole context
FORMATS = (*BYTES_PER_SAMPLE, *ENCODED_FORMATS)
GRANULARITIES = ("clause", "sentence", "none")
PREPARATIONS = ("full", "markup", "none")
FRAMINGS = ("bare", "header")
MOST_CHUNK_FRAMES = 25
MOST_BUFFER_DELAY_MS = 5000
MOST_TEMPERATURE = 2.0
LEAST_SPEED, MOST_SPEED = 0.25, 4.0
MOST_TOP_K = 4096
MOST_SEED = 2**63 - 1
MEANINGFUL_NULL = ("voice", "seed")  # null: no voice; a seed drawn for each context

_REFERENCE_KEYS = (AUDIO_KEY, TEXT_KEY)
_OPUS_RATE = 48000  # it decodes to no other
_DEFAULT_RATE = {"mulaw": 8000, "alaw": 8000, "opus": _OPUS_RATE}


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """What a context is spoken with.  `sample_rate` None: the format's own default; `rate` is what holds.

    `ref_audio`: the digest of the recording that is imitated, `ref_text` what is said in it; then `voice` is None.
    """

    voice: str | None
    seed: int | None
    temperature: float
    top_k: int
    top_p: float
    max_new_tokens: int
    initial_codec_chunk_frames: int = 4
    codec_chunk_frames: int = 25
    language: str | None = None
    response_format: str = "pcm"
    sample_rate: int | None = None
    speed: float = 1.0
    split_granularity: str = "clause"
    max_buffer_delay_ms: int | None = None
    text_preparation: str = "full"
    framing: str = "bare"
    ref_audio: str | None = None
    ref_text: str | None = None

    @property
    def rate(self) -> int:
        """Samples per second on the wire."""
        return self.sample_rate or _DEFAULT_RATE.get(self.response_format, NATIVE_RATE)

    @property
    def bytes_per_sample(self) -> int | None:
        """Bytes of one sample on the wire; None in an encoded format."""
        return BYTES_PER_SAMPLE.get(self.response_format)

    def to_wire(self) -> dict[str, object]:
        """The effective configuration, whole, as it stands in `session.ready` and `session.configured`."""
        return asdict(self) | {"sample_rate": self.rate}


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """What this server accepts.  `defaults`: what `null` restores and a session begins with.  `voices`: those that
    there are now; they may change.  `aliases`: other names of voices, for clients that bring the names of another
    server's."""

    defaults: SessionConfig
    voices: Collection[str]
    languages: tuple[str, ...]
    most_new_tokens: int
    aliases: Mapping[str, str] = field(default_factory=dict)

    def apply(self, config: SessionConfig, changes: Mapping[str, object]) -> SessionConfig:
        """`config` with all of `changes`, or a Refusal that names the first one which cannot be."""
        return self.apply_all(config, changes)[0]

    def apply_all(
        self, config: SessionConfig, changes: Mapping[str, object]
    ) -> tuple[SessionConfig, GivenReference | None]:
        """As `apply`; also the reference among the changes, if there is one."""
        values = {key: self._value(key, value) for key, value in changes.items() if key not in _REFERENCE_KEYS}
        reference = read_reference(changes)
        changed = self._with_reference(replace(config, **values), changes, reference)
        if changed.codec_chunk_frames < changed.initial_codec_chunk_frames:
            least = f"initial_codec_chunk_frames ({changed.initial_codec_chunk_frames})"
            allowed = f"an integer from {least} to {MOST_CHUNK_FRAMES}"
            raise _bad("codec_chunk_frames", changed.codec_chunk_frames, allowed)
        _check_format(changed)
        return changed, reference

    def check_voice(self, config: SessionConfig) -> None:
        """Raises Refusal(unknown_voice) if its voice is none any more."""
        if config.voice is not None and config.voice not in self.voices:
            self._voice("voice", config.voice)

    def _with_reference(
        self, config: SessionConfig, changes: Mapping[str, object], given: GivenReference | None
    ) -> SessionConfig:
        """A reference takes the place of a voice, and a voice that of a reference."""
        voice = changes.get("voice")
        if given is not None:
            if voice is not None:
                raise Refusal(ErrorCode.BAD_VALUE, f"{AUDIO_KEY} and voice exclude each other; got both")
            return replace(config, voice=None, ref_audio=given.digest, ref_text=given.text)
        if config.ref_audio is None or not (voice is not None or changes.keys() & set(_REFERENCE_KEYS)):
            return config
        kept = config.voice if "voice" in changes else self.defaults.voice
        return replace(config, voice=kept, ref_audio=None, ref_text=None)

    def _value(self, key: str, value: object) -> object:
        if key not in _CHECKS:
            allowed = ", ".join(field.name for field in fields(SessionConfig))
            raise Refusal(ErrorCode.UNKNOWN_FIELD, f"unknown key {shown(key)}; known keys: {allowed}")
        if value is None and key not in MEANINGFUL_NULL:
            return getattr(self.defaults, key)
        return _CHECKS[key](self, key, value)

    def _voice(self, key: str, value: object) -> str | None:
        if value is not None and not isinstance(value, str):
            raise _bad(key, value, "the name of a voice, or null for none")
        if value is None or value in self.voices:
            return value
        if self.aliases.get(value) in self.voices:
            return self.aliases[value]
        voices = ", ".join(self.voices) or "none"
        raise Refusal(ErrorCode.UNKNOWN_VOICE, f"unknown voice {shown(value)}; voices: {voices}")

    def _language(self, key: str, value: object) -> str:
        return _one_of(self.languages)(self, key, value)

    def _seed(self, key: str, value: object) -> int | None:
        return None if value is None else _integer(0, MOST_SEED)(self, key, value)

    def _max_new_tokens(self, key: str, value: object) -> int:
        return _integer(1, self.most_new_tokens)(self, key, value)


Check = Callable[[ConfigRules, str, object], object]


def _check_format(config: SessionConfig) -> None:
    """What goes together with the response format."""
    name = config.response_format
    if name == "opus" and config.rate != _OPUS_RATE:
        raise _bad("sample_rate", config.rate, f"{_OPUS_RATE}, or null, with response_format opus")
    if name in ENCODED_FORMATS and config.framing != "bare":
        raise _bad("framing", config.framing, f"bare, or null, with response_format {name}")


def _bad(key: str, value: object, allowed: str) -> Refusal:
    return Refusal(ErrorCode.BAD_VALUE, f"{key} must be {allowed}; got {shown(value)}")


def _one_of(allowed: tuple[str, ...] | tuple[int, ...]) -> Check:
    def check(_: ConfigRules, key: str, value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, (int, str)) or value not in allowed:
            raise _bad(key, value, f"one of {', '.join(map(str, allowed)) or 'none'}")
        return value

    return check


def _integer(least: int, most: int) -> Check:
    def check(_: ConfigRules, key: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise _bad(key, value, f"an integer from {least} to {most}")
        return value

    return check


def _number(most: float, least: float = 0.0) -> Check:
    """From `least` on, or above 0, up to `most`."""

    def check(_: ConfigRules, key: str, value: object) -> float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not least <= value <= most or value == 0:
            raise _bad(key, value, f"a number {f'from {least:g} to' if least else 'above 0, at most'} {most:g}")
        return float(value)

    return check


_CHECKS: dict[str, Check] = {
    "voice": ConfigRules._voice,
    "language": ConfigRules._language,
    "response_format": _one_of(FORMATS),
    "sample_rate": _one_of(SAMPLE_RATES),
    "speed": _number(MOST_SPEED, LEAST_SPEED),
    "temperature": _number(MOST_TEMPERATURE),
    "top_k": _integer(1, MOST_TOP_K),
    "top_p": _number(1.0),
    "seed": ConfigRules._seed,
    "max_new_tokens": ConfigRules._max_new_tokens,
    "initial_codec_chunk_frames": _integer(1, MOST_CHUNK_FRAMES),
    "codec_chunk_frames": _integer(1, MOST_CHUNK_FRAMES),
    "split_granularity": _one_of(GRANULARITIES),
    "max_buffer_delay_ms": _integer(0, MOST_BUFFER_DELAY_MS),
    "text_preparation": _one_of(PREPARATIONS),
    "framing": _one_of(FRAMINGS),
}
