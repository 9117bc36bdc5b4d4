"""Every key of the config: what is taken, what is refused and how."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace

import pytest
from protocol_session import DEFAULTS, RULES

from protocol.codes import ErrorCode, Refusal
from protocol.config import ENCODED_FORMATS, SAMPLE_RATES

REFERENCE = ("ref_audio", "ref_text")
SOUND = base64.b64encode(b"sound").decode()

TAKEN = [
    ("voice", "bo"), ("voice", None), ("language", "de"), ("response_format", "f32"), ("sample_rate", 8000),
    ("temperature", 0.01), ("temperature", 2), ("top_k", 1), ("top_k", 4096), ("top_p", 1), ("seed", 0),
    ("seed", 2**63 - 1), ("seed", None), ("max_new_tokens", 1), ("max_new_tokens", 2048),
    ("initial_codec_chunk_frames", 25), ("codec_chunk_frames", 4), ("split_granularity", "none"),
    ("max_buffer_delay_ms", 0), ("max_buffer_delay_ms", 5000), ("framing", "header"),
    ("text_preparation", "markup"), ("text_preparation", "none"), ("speed", 0.25), ("speed", 4),
    ("response_format", "wav"), ("response_format", "aac"), ("response_format", "flac"),
]  # fmt: skip

REFUSED = [
    ("voice", 5), ("voice", ["ada"]), ("language", "xx"), ("language", 1), ("response_format", "ogg"),
    ("response_format", "pcm16"), ("response_format", ["opus"]), ("response_format", {}), ("sample_rate", 44101),
    ("sample_rate", "44100"), ("sample_rate", True), ("temperature", 0), ("temperature", 2.1), ("temperature", True),
    ("temperature", "1"), ("temperature", 10**400), ("top_k", 0), ("top_k", 1.0), ("top_p", 0), ("top_p", 1.1),
    ("top_p", float("nan")), ("seed", -1), ("seed", 2**63), ("seed", 1.5), ("seed", False), ("max_new_tokens", 0),
    ("max_new_tokens", 2049), ("initial_codec_chunk_frames", 0), ("codec_chunk_frames", 26), ("codec_chunk_frames", 3),
    ("split_granularity", "word"), ("max_buffer_delay_ms", 5001), ("framing", "raw"), ("text_preparation", True),
    ("speed", 0), ("speed", 0.2), ("speed", 4.01), ("speed", True), ("speed", "1"), ("speed", float("nan")),
    ("ref_audio", "data:audio/wav;base64,AA=="), ("ref_text", "what was said"), ("ref_audio", 5),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), TAKEN)
def test_taken(key, value):
    assert getattr(RULES.apply(DEFAULTS, {key: value}), key) == value


@pytest.mark.parametrize(("key", "value"), REFUSED)
def test_refused_by_name(key, value):
    with pytest.raises(Refusal) as refused:
        RULES.apply(DEFAULTS, {"top_k": 7, key: value})
    assert refused.value.code == ErrorCode.BAD_VALUE
    assert key in refused.value.message


def test_another_name_stands_for_a_voice_as_long_as_there_is_one():
    rules = replace(RULES, aliases={"alloy": "bo", "ada": "bo", "echo": "gone"})
    assert rules.apply(DEFAULTS, {"voice": "alloy"}).voice == "bo"
    assert rules.apply(DEFAULTS, {"voice": "ada"}).voice == "ada"
    with pytest.raises(Refusal, match="unknown voice 'echo'; voices: ada, bo"):
        rules.apply(DEFAULTS, {"voice": "echo"})


def test_unknown_voices_and_keys_are_named_with_what_is_allowed():
    with pytest.raises(Refusal, match="ada, bo") as voice:
        RULES.apply(DEFAULTS, {"voice": "nobody"})
    assert voice.value.code == ErrorCode.UNKNOWN_VOICE
    with pytest.raises(Refusal, match=r"'colour'.*known keys: voice") as key:
        RULES.apply(DEFAULTS, {"colour": "red"})
    assert key.value.code == ErrorCode.UNKNOWN_FIELD


@pytest.mark.parametrize("key", [key for key in DEFAULTS.to_wire() if key not in ("voice", "seed", *REFERENCE)])
def test_null_restores_the_default(key):
    values = dict(TAKEN) | {"language": "de"}
    changed = RULES.apply(DEFAULTS, {key: values[key]})
    assert RULES.apply(changed, {key: None}) == DEFAULTS


@pytest.mark.parametrize(
    ("name", "rate", "width"),
    [("pcm", 44100, 2), ("f32", 44100, 4), ("mulaw", 8000, 1), ("alaw", 8000, 1), ("mp3", 44100, None)],
)
def test_formats_have_their_own_default_rate(name, rate, width):
    config = RULES.apply(DEFAULTS, {"response_format": name})
    assert config.rate == config.to_wire()["sample_rate"] == rate
    assert config.bytes_per_sample == width
    assert RULES.apply(config, {"sample_rate": 16000}).rate == 16000


@pytest.mark.parametrize("rate", SAMPLE_RATES)
def test_mp3_has_all_rates(rate):
    assert RULES.apply(DEFAULTS, {"response_format": "mp3", "sample_rate": rate}).rate == rate


def test_opus_has_its_own_rate_and_no_other():
    config = RULES.apply(DEFAULTS, {"response_format": "opus"})
    assert config.rate == config.to_wire()["sample_rate"] == 48000
    assert RULES.apply(DEFAULTS, {"response_format": "opus", "sample_rate": 48000}).rate == 48000
    for before in (config, DEFAULTS):
        with pytest.raises(Refusal, match=r"sample_rate must be 48000, or null, with response_format opus; got 24000"):
            RULES.apply(before, {"sample_rate": 24000, "response_format": "opus"})
    with pytest.raises(Refusal, match="sample_rate"):
        RULES.apply(RULES.apply(DEFAULTS, {"sample_rate": 16000}), {"response_format": "opus"})


@pytest.mark.parametrize("name", ENCODED_FORMATS)
def test_encoded_audio_has_no_headers(name):
    with pytest.raises(Refusal, match=f"framing must be bare, or null, with response_format {name}") as refused:
        RULES.apply(RULES.apply(DEFAULTS, {"framing": "header"}), {"response_format": name})
    assert refused.value.code == ErrorCode.BAD_VALUE
    with pytest.raises(Refusal, match="framing"):
        RULES.apply(RULES.apply(DEFAULTS, {"response_format": name}), {"framing": "header"})


@pytest.mark.parametrize("head", ["data:audio/wav;base64", "data:audio/webm;codecs=opus;base64", "data:;base64"])
def test_a_reference_takes_the_place_of_the_voice(head):
    config, given = RULES.apply_all(DEFAULTS, {"ref_audio": f"{head},{SOUND}", "ref_text": "What was said."})
    assert (given.audio, given.text) == (b"sound", "What was said.")
    assert (config.voice, config.ref_audio, config.ref_text) == (None, given.digest, given.text)
    assert given.digest == "sha256:" + hashlib.sha256(b"sound").hexdigest()
    assert RULES.apply_all(config, {"temperature": 0.5})[1] is None
    assert RULES.apply(config, {"voice": None}).ref_audio == given.digest
    assert RULES.apply(config, {"voice": "bo"}) == RULES.apply(DEFAULTS, {"voice": "bo"})
    for keys in REFERENCE, REFERENCE[:1]:
        assert RULES.apply(config, dict.fromkeys(keys)) == DEFAULTS
    assert RULES.apply(DEFAULTS, dict.fromkeys(REFERENCE)) == DEFAULTS


BAD_REFERENCES = [
    ("voice", f"data:audio/wav;base64,{SOUND}", "What was said.", "bo"),
    ("ref_text", f"data:audio/wav;base64,{SOUND}", "", None),
    ("ref_text", f"data:audio/wav;base64,{SOUND}", "x" * 1001, None),
    ("ref_text", f"data:audio/wav;base64,{SOUND}", 7, None),
    ("ref_text", f"data:audio/wav;base64,{SOUND}", "\ud800", None),
    ("ref_audio", "data:audio/wav;base64,not base 64", "What was said.", None),
    ("ref_audio", "data:audio/wav;base64,ä", "What was said.", None),
    ("ref_audio", "data:audio/wav,raw", "What was said.", None),
    ("ref_audio", "https://example.com/voice.wav", "What was said.", None),
    ("ref_audio", "/etc/passwd", "What was said.", None),
    ("ref_audio", "data:" + "a" * 1000 + f";base64,{SOUND}", "What was said.", None),
]


@pytest.mark.parametrize(("key", "audio", "text", "voice"), BAD_REFERENCES)
def test_a_bad_reference_is_refused_by_name(key, audio, text, voice):
    changes = {"ref_audio": audio, "ref_text": text} | ({} if voice is None else {"voice": voice})
    with pytest.raises(Refusal, match=key) as refused:
        RULES.apply(DEFAULTS, changes)
    assert refused.value.code == ErrorCode.BAD_VALUE
    assert len(refused.value.message) < 300
