"""Fields of a request for speech as OpenAI and vLLM-Omni name them, read as keys of our config.

Fields that would change the speech in a way that there is none of here are refused by name, never dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from protocol.codes import ErrorCode, Refusal
from protocol.text import shown

Fields = Mapping[str, object]

LONGEST_INPUT = 4096  # characters, as OpenAI has it
OPENAI_MODELS = (
    "tts-1",
    "tts-1-hd",
    "gpt-4o-mini-tts",
    "gpt-4o-mini-tts-2025-03-20",
    "gpt-4o-mini-tts-2025-12-15",
)  # their clients have one of these built in

_AS_THEY_ARE = (
    "response_format", "speed", "sample_rate", "seed", "max_new_tokens", "initial_codec_chunk_frames", "ref_text",
    "temperature", "top_k", "top_p", "codec_chunk_frames", "text_preparation",
)  # fmt: skip
_TASKS = ("CustomVoice", "Base")
_LANGUAGE_NAMES = {
    "arabic": "ar", "chinese": "zh", "dutch": "nl", "english": "en", "french": "fr", "german": "de", "hindi": "hi",
    "italian": "it", "japanese": "ja", "korean": "ko", "polish": "pl", "portuguese": "pt", "russian": "ru",
    "spanish": "es", "turkish": "tr", "vietnamese": "vi",
}  # fmt: skip


def bad_value(key: str, value: object, allowed: str) -> Refusal:
    """The refusal of a value."""
    return Refusal(ErrorCode.BAD_VALUE, f"{key} must be {allowed}; got {shown(value)}")


def check_known(fields: Fields, known: tuple[str, ...]) -> None:
    """Raises Refusal(unknown_field) that lists what is known."""
    for key in fields:
        if key not in known:
            raise Refusal(ErrorCode.UNKNOWN_FIELD, f"unknown field {shown(key)}; known fields: {', '.join(known)}")


def text_field(fields: Fields, key: str) -> str | None:
    """A string, None if it is not given.  Raises Refusal."""
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise bad_value(key, value, "a string")
    return value


def flag(fields: Fields, key: str) -> bool:
    """A truth value, false if it is not given.  Raises Refusal."""
    value = fields.get(key)
    if value is not None and not isinstance(value, bool):
        raise bad_value(key, value, "true or false")
    return bool(value)


def check_model(name: str | None, served: str) -> None:
    """Raises Refusal(not_found) for a model that is not served: neither `served` nor one of OpenAI's names."""
    if name is None or name in (served, *OPENAI_MODELS) or name.rpartition("/")[2] == served.rpartition("/")[2]:
        return
    known = ", ".join((served, *OPENAI_MODELS))
    raise Refusal(ErrorCode.NOT_FOUND, f"model {shown(name)} does not exist; models: {known}")


def config_changes(fields: Fields) -> dict[str, object]:
    """Keys of the config, whose values the config's rules check.  Raises Refusal."""
    for key, check in _REFUSED.items():
        if not check(fields.get(key)):
            raise Refusal(ErrorCode.BAD_VALUE, f"{key} is not supported: {_WHY[key]}")
    changes = {key: fields[key] for key in _AS_THEY_ARE if fields.get(key) is not None}
    _check_task(fields)
    if (language := _language(fields)) is not None:
        changes["language"] = language
    voice = _voice(fields)
    if fields.get("ref_audio") is not None:
        changes["ref_audio"] = _reference(fields["ref_audio"])  # in place of the voice, which some clients always send
    elif voice is not None:
        changes["voice"] = voice
    return changes


COMMON_FIELDS = (
    "model", "voice", "speaker", "task_type", "language", "instructions", "ref_audio", *_AS_THEY_ARE,
    "x_vector_only_mode", "speaker_embedding", "non_streaming_mode", "word_timestamps", "extra_params",
)  # fmt: skip
"""All that `config_changes` and `check_model` look at."""


def _voice(fields: Fields) -> str | None:
    """`voice`, a name or an object with an `id`, or `speaker`."""
    value = fields.get("voice")
    if isinstance(value, Mapping) and set(value) == {"id"}:
        value = value["id"]
    if value is not None and not isinstance(value, str):
        raise bad_value("voice", value, "the name of a voice, or an object with such an id")
    speaker = text_field(fields, "speaker")
    if value is not None and speaker is not None and value != speaker:
        raise Refusal(ErrorCode.BAD_VALUE, "voice and speaker are the same thing, and differ here")
    return value if value is not None else speaker


def _check_task(fields: Fields) -> None:
    task = text_field(fields, "task_type")
    if task is not None and task not in _TASKS:
        raise bad_value("task_type", task, f"one of {', '.join(_TASKS)}: voices cannot be designed in words")


def _language(fields: Fields) -> str | None:
    """A code, or the name of a language in English; None, also for `Auto`: the voice's."""
    name = text_field(fields, "language")
    if name is None or name.lower() in ("", "auto"):
        return None
    return _LANGUAGE_NAMES.get(name.lower(), name)


def _reference(value: object) -> str:
    """A data URL as it is, bare base64 as one.  What would have to be fetched is refused: it could be anything."""
    if not isinstance(value, str) or "://" in value[:16]:
        raise bad_value("ref_audio", value, "a data URL or base64; nothing is fetched from an address")
    return value if value.startswith("data:") else f"data:;base64,{value}"


def _is_off(value: object) -> bool:
    return value is None or value is False


def _is_nothing(value: object) -> bool:
    return value is None or value in ("", [], {})


_REFUSED: dict[str, Callable[[object], bool]] = {
    "instructions": _is_nothing,
    "speaker_embedding": _is_nothing,
    "extra_params": _is_nothing,
    "x_vector_only_mode": _is_off,
    "non_streaming_mode": _is_off,
    "word_timestamps": _is_off,
}
_WHY = {
    "instructions": "the model takes text and a voice, and nothing that says how to speak",
    "speaker_embedding": "a voice is made of a recording (ref_audio) and its text (ref_text)",
    "extra_params": "the model has no further parameters",
    "x_vector_only_mode": "a recording (ref_audio) is used together with its text (ref_text)",
    "non_streaming_mode": "it is a mode of another model",
    "word_timestamps": "the model does not tell when a word is spoken",
}
