"""The messages of vLLM-Omni's `/v1/audio/speech/stream`: an utterance, up to `input.done`, is a context.

Source: vLLM-Omni, vllm_omni/entrypoints/openai/serving_speech_stream.py.  Other than there, text is taken in while
speech is made, the next utterance too.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from protocol.codes import CloseCode, ErrorCode, FatalRefusal, Refusal
from protocol.compat.speech_fields import LONGEST_INPUT
from protocol.compat.vllm_omni.options import Options, read_options
from protocol.compat.vllm_omni.units import Utterance
from protocol.config import ConfigRules, SessionConfig
from protocol.context import Context
from protocol.dialect import Dialect
from protocol.limits import Limits
from protocol.messages import ClientMessage, Config, Done, Finish, Hello, Metrics, Text, Usage
from protocol.text import parse_json, shown

_TYPES = ("session.config", "input.text", "input.done", "session.close")
_RECORDING = ("ref_audio", "ref_text")  # set for the session, as it is looked at only once


class VllmOmni(Dialect):
    """`rules`: by which a config is judged when it comes; it holds for the utterances that begin later.

    With `split_granularity: none` nothing is spoken of an utterance before its end, as its audio begins with its text.
    """

    def __init__(self, rules: ConfigRules) -> None:
        super().__init__()
        self._rules = rules
        self._model = ""
        self._options: Options | None = None  # before the first session.config
        self._has_recording = False
        self._utterances: dict[str, Utterance] = {}  # contexts that have not ended, by their ids
        self._begun = 0
        self._current: str | None = None  # the context that takes text
        self._text: list[str] = []  # of an utterance that is not split

    def ready(self, hello: Hello, config: SessionConfig, limits: Limits) -> None:
        self._model = hello.model

    # What the client says -------------------------------------------------------------------------------------------

    def hear(self, data: str) -> list[ClientMessage]:
        try:
            return self._heard(data)
        except Refusal as refusal:
            if self._options is None:  # nothing goes without a config
                raise FatalRefusal(refusal.code, CloseCode.POLICY, refusal.message) from refusal
            raise

    def _heard(self, data: str) -> list[ClientMessage]:
        fields = parse_json(data)
        if not isinstance(fields, dict):
            raise Refusal(ErrorCode.BAD_MESSAGE, f"a message must be a JSON object; got {shown(fields)}")
        kind = fields.pop("type", None)
        if kind not in _TYPES:
            raise Refusal(ErrorCode.UNKNOWN_TYPE, f"unknown message type: {shown(kind)}; types: {', '.join(_TYPES)}")
        if kind == "session.config":
            return self._configure(fields)
        if self._options is None:
            raise Refusal(ErrorCode.BAD_MESSAGE, f"expected session.config, got: {kind}")
        if kind == "input.text":
            return self._append(fields)
        return self._finish_utterance() if kind == "input.done" else [Finish()]

    def _configure(self, fields: Mapping[str, object]) -> list[ClientMessage]:
        if self._current is not None or self._text:
            message = "session.config cannot be applied while an utterance is in progress; send input.done first"
            raise Refusal(ErrorCode.CONFIG_LOCKED, message)
        options = read_options(fields, self._model)
        self._rules.apply(self._rules.defaults, options.changes)
        recording = {key: options.changes.get(key) for key in _RECORDING}
        if not (any(recording.values()) or self._has_recording):
            self._options = options
            return []
        if self._utterances:
            message = "another recording (ref_audio) can be set after the session.done of all utterances before it"
            raise Refusal(ErrorCode.CONFIG_LOCKED, message)
        self._options, self._has_recording = options, any(recording.values())
        return [Config(recording)]

    def _append(self, fields: Mapping[str, object]) -> list[ClientMessage]:
        text = fields.get("text", "")
        if not isinstance(text, str):
            raise Refusal(ErrorCode.BAD_VALUE, f"text must be a string; got {shown(text)}")
        if not text:
            return []
        if self._options.split:
            return self._say(text)
        characters = sum(map(len, self._text)) + len(text)
        if characters > LONGEST_INPUT:
            message = f"an utterance must have at most {LONGEST_INPUT} characters; got {characters}; nothing was added"
            raise Refusal(ErrorCode.TEXT_TOO_LONG, message)
        self._text.append(text)
        return []

    def _finish_utterance(self) -> list[ClientMessage]:
        text, self._text = "".join(self._text), []
        said = self._say(text) if text else []
        name, self._current = self._current or self._begin(""), None
        return [*said, Done(name)] if name in self._utterances else []

    def _say(self, text: str) -> list[ClientMessage]:
        """To the context that takes text, or a new one.  What is left of a text that failed is dropped."""
        if self._current is not None:
            return [Text(text, self._current)] if self._current in self._utterances else []
        self._current = self._begin("" if self._options.split else text)
        own = {key: value for key, value in self._options.changes.items() if key not in _RECORDING}
        return [Text(text, self._current, own)]

    def _begin(self, text: str) -> str:
        """A new utterance, of which `text` is known -> the id of its context."""
        name = f"utterance-{self._begun}"
        self._utterances[name] = Utterance(self._begun, self._options, text, self._tell, self._say_binary)
        self._begun += 1
        return name

    # What the session says ------------------------------------------------------------------------------------------

    def error(self, code: ErrorCode, message: str, fatal: bool = False, **given: object) -> None:
        utterance = self._utterances.pop(given.get("context_id"), None)
        if utterance is not None:
            utterance.fail(code, message)
        elif code is not ErrorCode.CONTEXT_ENDED:  # the rest of an utterance whose failure was told
            self._tell("error", told=code, code=code, message=message)

    def fell_silent(self, context: Context) -> None:
        if context.name == self._current:
            self._current = None

    def audio_start(self, context: Context) -> None:
        self._utterances[context.name].begin(context.config.rate)

    def audio_segment(self, context: Context, spoken: str) -> None:
        if spoken:
            self._utterances[context.name].segment(context.record.segments[-1].text)

    def audio(self, context: Context, data: bytes, samples: int) -> None:
        self._utterances[context.name].audio(data)

    def audio_done(self, context: Context, error: ErrorCode | None) -> None:
        if error is None:
            self._utterances[context.name].close_unit()

    def session_done(self, context: Context, reason: str, seed: int, usage: Usage, metrics: Metrics) -> None:
        self._utterances.pop(context.name).end()

    def cancelled(self, context: Context, spoken: str, remaining: str) -> None:
        del self._utterances[context.name]

    def _tell(self, kind: str, told: ErrorCode | None = None, **fields: object) -> None:
        self._say_text(orjson.dumps({"type": kind} | fields), told)
