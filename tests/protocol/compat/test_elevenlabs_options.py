"""What the query of a request says."""

from __future__ import annotations

import pytest
from protocol_session import DEFAULTS, RULES

from protocol.codes import Refusal
from protocol.compat.elevenlabs.errors import close_reason
from protocol.compat.elevenlabs.messages import read_key
from protocol.compat.elevenlabs.options import OUTPUT_FORMATS, read_options


@pytest.mark.parametrize("name", OUTPUT_FORMATS)
def test_every_format_is_one_of_ours(name):
    config = RULES.apply(DEFAULTS, read_options({"output_format": name}).changes)
    codec, rate = name.split("_")[:2]
    assert {"mulaw": "ulaw"}.get(config.response_format, config.response_format) == codec
    assert config.rate == int(rate)


def test_defaults():
    options = read_options({})
    assert options.changes == {"response_format": "mp3", "sample_rate": 44100, "text_preparation": "full"}
    assert (options.auto_mode, options.inactivity_s) == (False, 20.0)


def test_what_livekit_and_pipecat_ask_for():
    query = {
        "model_id": "eleven_turbo_v2_5",
        "output_format": "pcm_24000",
        "language_code": "de",
        "enable_ssml_parsing": "false",
        "enable_logging": "true",
        "inactivity_timeout": "180",
        "apply_text_normalization": "off",
        "sync_alignment": "true",
        "auto_mode": "true",
    }
    options = read_options(query)
    config = RULES.apply(DEFAULTS, options.changes)
    assert (config.response_format, config.rate, config.language) == ("pcm", 24000, "de")
    assert config.text_preparation == "markup"
    assert (options.auto_mode, options.inactivity_s) == (True, 180.0)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"output_format": "pcm_12345"}, "output_format must be one of pcm_8000, .*; got 'pcm_12345'"),
        ({"inactivity_timeout": "181"}, "inactivity_timeout must be a number of seconds above 0, at most 180"),
        ({"inactivity_timeout": "nan"}, "inactivity_timeout must be"),
        ({"inactivity_timeout": "soon"}, "inactivity_timeout must be"),
        ({"auto_mode": "yes"}, "auto_mode must be true or false"),
        ({"apply_text_normalization": "x"}, "apply_text_normalization must be auto, on, off"),
        ({"enable_ssml_parsing": "true"}, "enable_ssml_parsing is not supported"),
    ],
)
def test_what_cannot_be_is_named(query, why):
    with pytest.raises(Refusal, match=why):
        read_options(query)


@pytest.mark.parametrize(
    ("first", "key"),
    [
        ('{"text": " ", "xi-api-key": "k"}', "k"),
        ('{"text": " ", "xi_api_key": " k "}', "k"),
        ('{"text": " ", "authorization": "Bearer k"}', "k"),
        ('{"text": " ", "authorization": "k"}', "k"),
        ('{"text": " ", "xi-api-key": 5}', None),
        ('{"text": " "}', None),
        ("[]", None),
        ("{", None),
    ],
)
def test_a_key_in_the_first_message(first, key):
    assert read_key(first) == key


def test_a_long_reason_is_cut_to_what_a_close_frame_holds():
    assert len(close_reason("ä" * 100).encode()) == 122
