"""Deepgram's second speech protocol (Flux), `/v2/speak`: turns, each ended by a flush or by an interrupt.

A turn is a context, and `speech_id` its id.  One turn is active: `SpeechStarted` begins it, then comes all of its audio
and no other, and `SpeechMetadata` or `SpeechInterrupted` ends it.  Others wait for their turn.
"""

from __future__ import annotations

import math
import secrets

from protocol.codes import ErrorCode, Refusal
from protocol.compat.deepgram.messages import KEEP_ALIVE, DeepgramDialect, fatal_refusal, model_uuid
from protocol.compat.deepgram.timeline import Timeline
from protocol.config import SessionConfig
from protocol.context import Context
from protocol.limits import Limits
from protocol.messages import Cancel, ClientMessage, Done, Finish, Hello, Metrics, Text, Usage
from protocol.parsing import MOST_OFFSET_MS
from protocol.text import shown

SPEEDS = (0.5, 1.5)
SPEED_STEP = 0.05

_NO_CONTROLS = {"pronunciations_applied": 0, "breaks_applied": 0, "pronunciation_warnings": 0}


class Flux(DeepgramDialect):
    """Positions in audio are milliseconds from the start of the session, as its listener counts what was played."""

    kinds = ("Speak", "Flush", "Interrupt", "Configure", "Close", KEEP_ALIVE)

    def __init__(self, request_id: str, model: str, speed: float | None = None) -> None:
        super().__init__(request_id, model)
        self._speed = speed
        self._turns: list[str] = []  # that are not over, the active one first
        self._taking: str | None = None  # the turn that takes text
        self._timeline = Timeline()
        self._characters = 0
        self._closes = False
        self._room = 0

    def hear(self, data: str) -> list[ClientMessage]:
        kind, fields = self._read(data)
        if kind == "Speak":
            return self._speak(self._text(fields))
        if kind == "Flush":
            return self._flush()
        if kind == "Interrupt":
            return self._interrupt(fields.get("playback_offset"))
        if kind == "Configure":
            self._configure(fields.get("speed"))
        if kind == "Close":
            self._taking, self._closes = None, True
            self._conclude()
            return [Finish()]
        return []

    def _speak(self, text: str) -> list[ClientMessage]:
        if self._taking is not None:
            return [Text(text, self._taking)]
        if not text or self._closes:
            return []
        if len(text) > self._room:
            raise Refusal(ErrorCode.TEXT_TOO_LONG, f"{len(text)} characters exceed the limit of {self._room}")
        self._taking = f"dg_sp_{secrets.token_hex(6)}"
        self._turns.append(self._taking)
        if len(self._turns) == 1:
            self._say("SpeechStarted", speech_id=self._taking)
        return [Text(text, self._taking, {} if self._speed is None else {"speed": self._speed})]

    def _flush(self) -> list[ClientMessage]:
        name, self._taking = self._taking, None
        if name is None:
            self._warn("NO_ACTIVE_SPEECH", "there is no text to flush")
            return []
        self._say("Flushed", speech_id=name)
        return [Done(name)]

    def _interrupt(self, given: object) -> list[ClientMessage]:
        """What waits behind the active turn is dropped with it, in silence: it was said before the interrupt."""
        offset = _offset(given)
        if offset is not None and offset < self._timeline.latest:
            least = f"{self._timeline.latest:g} ms, where the last interrupt was"
            self._warn("INVALID_INTERRUPT_OFFSET", f"playback_offset, {offset:g} ms, is before {least}")
            return []
        if not self._turns:
            if offset is not None:
                self._timeline.set_right(offset)
            self._warn("NO_ACTIVE_SPEECH", "there is no active turn to interrupt")
            return []
        active, *waiting = self._turns
        self._taking = None
        self._turns = [active]
        return [*map(Cancel, waiting), Cancel(active, self._timeline.interrupt(active, offset))]

    def _configure(self, speed: object) -> None:
        """For the turns that begin from now on."""
        if speed is not None:
            problem = speed_problem(speed)
            if problem is not None:
                code, description = problem
                self._say("ConfigureFailure", code=code, field="speed", value=speed, description=description)
                return
            self._speed = float(speed)
        self._say("ConfigureSuccess", applied={} if self._speed is None else {"speed": self._speed})

    # What the session says ------------------------------------------------------------------------------------------

    def ready(self, hello: Hello, config: SessionConfig, limits: Limits) -> None:
        self._room = limits.text_characters
        self._say(
            "Connected",
            request_id=self._request_id,
            model_name=self._model,
            model_version=hello.model,
            model_uuids=[model_uuid(hello.model)],
        )

    def progress(self, context: Context, state: str, queue_position: int | None) -> None:
        if state == "queued" and self._beats():
            self._warn("SYNTHESIS_QUEUED", "the turn waits for its place in the server")

    def fell_silent(self, context: Context) -> None:
        if context.name == self._taking:
            self._taking = None

    def audio(self, context: Context, data: bytes, samples: int) -> None:
        self._say_binary(data)

    def session_done(self, context: Context, reason: str, seed: int, usage: Usage, metrics: Metrics) -> None:
        if not context.record.samples:
            self._warn("NO_SYNTHESIZABLE_TEXT", "the turn has no text that can be spoken")
        self._say("SpeechMetadata", **self._tell(context))
        self._timeline.played(_milliseconds(context))
        self._over(context)

    def cancelled(self, context: Context, spoken: str, remaining: str) -> None:
        metadata = self._tell(context)
        cut = self._timeline.interrupted(context.name, _milliseconds(context))
        if cut is None:
            return
        texts = {"text_spoken": spoken, "text_remaining": remaining} if cut.is_exact else {}
        self._say("SpeechInterrupted", audio_played_ms=round(cut.position), **texts, metadata=metadata)
        self._over(context)

    def _tell(self, context: Context) -> dict[str, object]:
        """Of a turn that is over."""
        characters = sum(len(segment.text) for segment in context.record.segments) + len(context.record.pending)
        self._characters += characters
        return {
            "speech_id": context.name,
            "audio_duration_ms": round(_milliseconds(context)),
            "input_character_count": characters,
            "billable_character_count": characters,
            "controls_applied": _NO_CONTROLS,
        }

    def _over(self, context: Context) -> None:
        self._turns.remove(context.name)
        if self._turns:
            self._say("SpeechStarted", speech_id=self._turns[0])
        self._conclude()

    def _conclude(self) -> None:
        """The last message, once the client has said all and has been told all."""
        if self._closes and not self._turns:
            self._say(
                "SessionMetadata",
                total_audio_duration_ms=round(self._timeline.position),
                total_input_character_count=self._characters,
                total_billable_character_count=self._characters,
            )


def _milliseconds(context: Context) -> float:
    """Of audio that was sent."""
    return context.record.samples * 1000 / context.config.rate


def _offset(given: object) -> float | None:
    """Of an `Interrupt`."""
    if given is None:
        return None
    value = given.get("value") if isinstance(given, dict) and given.get("type") == "time_ms" else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MOST_OFFSET_MS:
        form = f'{{"type": "time_ms", "value": N}}, N from 0 to {MOST_OFFSET_MS}'
        raise fatal_refusal(ErrorCode.BAD_VALUE, f"playback_offset must be {form}; got {shown(given)}")
    return value


def speed_problem(speed: object) -> tuple[str, str] | None:
    """(code, description) if that cannot be a speed."""
    least, most = SPEEDS
    if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not least <= speed <= most:
        return "SPEED_OUT_OF_RANGE", f"speed must be a number from {least} to {most}; got {shown(speed)}"
    if not math.isclose(speed / SPEED_STEP, round(speed / SPEED_STEP), abs_tol=1e-6):
        return "SPEED_INCREMENT_INVALID", f"speed must be a multiple of {SPEED_STEP}; got {speed:g}"
    return None
