"""vLLM-Omni's messages: what they mean to the session, and in which order it answers."""

from __future__ import annotations

import base64
import io
import json
import wave

import pytest
from protocol_session import HELLO, RULES, Peer, Speaker

from protocol.codes import CloseCode
from protocol.compat.vllm_omni.dialect import VllmOmni
from protocol.events import ContextOpened, InputEnded, ReferenceGiven, TextReceived
from protocol.limits import Limits
from protocol.session import ServerSession

PCM = {"response_format": "pcm", "stream_audio": True}
RECORDING = {"ref_audio": base64.b64encode(b"sound").decode(), "ref_text": "What was said."}


class OmniPeer(Peer):
    """A session in this dialect; nothing is said before the config."""

    def __init__(self, limits: Limits | None = None, **config: object) -> None:
        self.session = ServerSession(HELLO, RULES, limits or Limits(), now=0.0, dialect=VllmOmni(RULES))
        self.now = 0.0
        self.say("session.config", **config)
        assert self.sent() == []

    def spoken(self, *texts: str) -> list[dict | bytes]:
        """One utterance, spoken to its end -> all that is said."""
        speaker = Speaker(self)
        for text in texts:
            speaker.act(self.say("input.text", text=text))
        speaker.act(self.say("input.done"))
        while speaker.step():
            pass
        return self.sent()


def kinds(messages: list[dict | bytes]) -> list[str]:
    return ["audio" if isinstance(message, bytes) else message["type"] for message in messages]


# What is heard ------------------------------------------------------------------------------------------------------


def test_an_utterance_is_spoken_when_it_is_done():
    peer = OmniPeer()
    assert peer.say("input.text", text="Hello ") == peer.say("input.text", text="there.") == []
    opened, text, ended = peer.say("input.done")
    assert isinstance(opened, ContextOpened)
    assert (opened.config.response_format, opened.config.rate, opened.config.voice) == ("pcm", 24000, "ada")
    assert (text, ended) == (TextReceived(0, "Hello there."), InputEnded(0, "done"))


def test_a_split_utterance_is_spoken_while_its_text_comes():
    peer = OmniPeer(split_granularity="sentence", **PCM)
    opened, text = peer.say("input.text", text="Hello ")
    assert (opened.config.split_granularity, text) == ("sentence", TextReceived(0, "Hello "))
    assert peer.say("input.text", text="there.") == [TextReceived(0, "there.")]
    assert peer.say("input.done") == [InputEnded(0, "done")]


def test_the_fields_of_the_config_are_those_of_our_own():
    peer = OmniPeer(
        model="some-owner/model", speaker="bo", task_type="CustomVoice", language="German", instructions="",
        response_format="mp3", speed=1.5, max_new_tokens=77, initial_codec_chunk_frames=3, seed=5, sample_rate=16000,
        x_vector_only_mode=False, word_timestamps=False, ref_audio=None, non_streaming_mode=None,
    )  # fmt: skip
    peer.say("input.text", text="Hi.")
    opened = peer.say("input.done")[0].config
    assert (opened.voice, opened.language, opened.response_format, opened.rate) == ("bo", "de", "mp3", 16000)
    assert (opened.speed, opened.max_new_tokens, opened.initial_codec_chunk_frames, opened.seed) == (1.5, 77, 3, 5)


def test_the_config_can_be_changed_between_utterances_and_not_within():
    peer = OmniPeer()
    peer.say("input.text", text="Hi.")
    assert peer.say("session.config", speaker="bo") == []
    assert "input.done first" in peer.sent()[0]["message"]
    assert peer.say("input.done")[0].config.voice == "ada"
    peer.say("session.config", speaker="bo")  # while the first one is still being spoken
    peer.say("input.text", text="Hi.")
    assert peer.say("input.done")[0].config.voice == "bo"
    assert peer.sent() == []


def test_a_recording_is_the_voice_of_all_utterances_until_another_config():
    peer = OmniPeer()
    (given,) = peer.say("session.config", speaker="bo", **RECORDING)
    assert isinstance(given, ReferenceGiven) and given.reference.audio == b"sound"
    for _ in range(2):
        speaker = Speaker(peer)
        events = peer.say("input.text", text="Hi.") + peer.say("input.done")
        assert events[0].config.ref_audio == given.reference.digest and events[0].config.voice is None
        speaker.act(events)
        assert peer.say("session.config") == []  # before it has been spoken
        assert peer.sent()[0]["code"] == "config_locked"
        while speaker.step():
            pass
        assert kinds(peer.sent())[-1] == "session.done"
    peer.say("session.config", speaker="bo")
    peer.say("input.text", text="Hi.")
    assert peer.say("input.done")[0].config.voice == "bo"


# What is said -------------------------------------------------------------------------------------------------------


def test_a_unit_is_one_wav_file():
    start, data, done, end = OmniPeer().spoken("Hello there.")
    assert start == {
        "type": "audio.start", "utterance_index": 0, "sentence_index": 0, "sentence_text": "Hello there.",
        "format": "wav", "sample_rate": 24000, "channels": 1,
    }  # fmt: skip
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getframerate(), file.getnframes()) == (24000, len("Hello there."))
    assert done == {
        "type": "audio.done", "utterance_index": 0, "sentence_index": 0, "total_bytes": len(data), "error": False
    }  # fmt: skip
    assert end == {"type": "session.done", "utterance_index": 0, "total_sentences": 1}


def test_streamed_audio_leaves_as_it_comes():
    peer = OmniPeer(**PCM)
    speaker = Speaker(peer)
    peer.say("input.text", text="Hello there.")
    speaker.act(peer.say("input.done"))
    speaker.step()
    assert kinds(peer.sent()) == ["audio.start", "audio"]


def test_each_sentence_is_a_unit():
    said = OmniPeer(split_granularity="sentence").spoken("One. ", "Two.")
    assert kinds(said) == ["audio.start", "audio", "audio.done"] * 2 + ["session.done"]
    starts = [message for message in said if isinstance(message, dict) and message["type"] == "audio.start"]
    assert [(each["sentence_index"], each["sentence_text"]) for each in starts] == [(0, "One. "), (1, "Two.")]
    assert said[-1]["total_sentences"] == 2
    assert all(data[:4] == b"RIFF" for data in said if isinstance(data, bytes))


def test_encoded_formats_are_one_file_with_their_end():
    peer = OmniPeer(response_format="flac")
    speaker = Speaker(peer, encoded=True)
    peer.say("input.text", text="Hello.")
    speaker.act(peer.say("input.done"))
    while speaker.step():
        pass
    _, data, done, _ = peer.sent()
    assert data.endswith(b"!") and done["total_bytes"] == len(data)


def test_utterances_are_counted_and_an_empty_one_is_answered():
    peer = OmniPeer()
    assert peer.spoken()[-1] == {"type": "session.done", "utterance_index": 0, "total_sentences": 0}
    assert peer.spoken("Hi.")[-1] == {"type": "session.done", "utterance_index": 1, "total_sentences": 1}


def test_a_close_waits_for_what_was_said():
    peer = OmniPeer()
    speaker = Speaker(peer)
    peer.say("input.text", text="Hi.")
    speaker.act(peer.say("input.done"))
    speaker.act(peer.say("session.close"))
    assert peer.session.closing is None
    while speaker.step():
        pass
    assert peer.session.closing.code == CloseCode.NORMAL
    assert kinds(peer.sent())[-1] == "session.done"


# Errors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("begun", [False, True])
def test_a_failure_is_told_within_its_brackets(begun):
    peer = OmniPeer(**PCM)
    speaker = Speaker(peer)
    peer.say("input.text", text="Hello there.")
    speaker.act(peer.say("input.done"))
    if begun:
        speaker.step()
    speaker.fail(0)
    said = peer.sent()
    assert kinds(said) == ["audio.start", *["audio"] * begun, "error", "audio.done", "session.done"]
    error, done = said[-3:-1]
    assert (error["code"], error["message"]) == (
        "engine_failed",
        "Generation failed for utterance 0, sentence 0: scripted",
    )
    assert ("partial_audio" in error, done["error"], done["total_bytes"] > 0) == (begun, True, begun)


def test_the_rest_of_a_text_that_failed_is_dropped():
    peer = OmniPeer(split_granularity="sentence", **PCM)
    speaker = Speaker(peer)
    speaker.act(peer.say("input.text", text="One. "))
    speaker.fail(0)
    assert kinds(peer.sent())[-1] == "session.done"
    assert peer.say("input.text", text="Two.") == peer.say("input.done") == peer.sent() == []
    assert peer.spoken("Three.")[-1] == {"type": "session.done", "utterance_index": 1, "total_sentences": 1}


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ('{"type": "input.text", "text": "Hi."}', "expected session.config, got: input.text"),
        ("{", "not JSON"),
        ("[]", "must be a JSON object"),
        ('{"type": "session.config", "colour": "red"}', "'colour'"),
        ('{"type": "session.config", "voice": "nobody"}', "ada, bo"),
    ],
)
def test_without_a_config_nothing_goes(first, said):
    session = ServerSession(HELLO, RULES, Limits(), now=0.0, dialect=VllmOmni(RULES))
    session.receive_text(first.encode(), now=0.0)
    (frame,) = session.take_frames()
    error = json.loads(frame.data)
    assert error["type"] == "error" and said in error["message"]
    assert session.closing.code == CloseCode.POLICY


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model": "gpt-5"}, "model 'gpt-5' does not exist"),
        ({"task_type": "VoiceDesign"}, "task_type must be one of CustomVoice, Base"),
        ({"instructions": "Whisper."}, "instructions is not supported"),
        ({"word_timestamps": True}, "word_timestamps is not supported"),
        ({"speaker_embedding": [0.5]}, "speaker_embedding is not supported"),
        ({"x_vector_only_mode": True}, "x_vector_only_mode is not supported"),
        ({"stream_audio": True}, "response_format must be pcm with stream_audio"),
        ({"stream_audio": "yes"}, "stream_audio must be true or false"),
        ({"split_granularity": "clause", "response_format": "mp3"}, "must be wav or pcm with split_granularity clause"),
        ({"split_granularity": "word"}, "split_granularity must be one of none, sentence, clause"),
        ({"response_format": "ogg"}, "response_format must be one of wav"),
        ({"speed": 5}, "speed must be a number from 0.25 to 4"),
        ({"ref_audio": "http://example.org/a.wav", "ref_text": "A."}, "nothing is fetched"),
        ({"ref_audio": "file:///etc/passwd", "ref_text": "A."}, "nothing is fetched"),
        ({"ref_audio": RECORDING["ref_audio"]}, "ref_audio needs ref_text"),
        ({"voice": "ada", "speaker": "bo"}, "voice and speaker"),
        ({"language": "Klingon"}, "language must be one of"),
        ({"initial_codec_chunk_frames": 0}, "initial_codec_chunk_frames must be"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named_and_changes_nothing(config, said):
    peer = OmniPeer(speaker="bo")
    assert peer.say("session.config", **config) == []
    (error,) = peer.sent()
    assert error["type"] == "error" and said in error["message"]
    peer.say("input.text", text="Hi.")
    assert peer.say("input.done")[0].config.voice == "bo"


def test_wrong_messages_are_told_and_nothing_ends():
    peer = OmniPeer()
    for wrong in ('{"type": "input.cancel"}', '{"type": "input.text", "text": 5}', "nonsense", '{"type": []}'):
        assert peer.raw(wrong) == []
        assert [message["type"] for message in peer.sent()] == ["error"]
    peer.say("input.text", text="x" * 4096)
    assert peer.say("input.text", text="y") == []
    assert "at most 4096 characters" in peer.sent()[0]["message"]
    assert len(peer.say("input.done")[1].text) == 4096
