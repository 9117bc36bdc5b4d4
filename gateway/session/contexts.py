"""The contexts of one connection that have no terminal message yet: how each begins, speaks in its turn, and ends."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gateway.admission import Share
from gateway.errors import ClientError, TooManyContexts, client_error
from gateway.service import Service
from gateway.session.outbox import Outbox, Playback
from gateway.session.pipeline import ContextPipeline, Surroundings
from gateway.session.session_voice import SessionVoice
from gateway.session.utterance import AudioPiece, Failure, Item
from protocol.config import SessionConfig
from protocol.events import (
    ContextCancelled,
    ContextOpened,
    Event,
    FlushRequested,
    InputEnded,
    ReferenceGiven,
    TextReceived,
)
from protocol.session import ServerSession

log = logging.getLogger(__name__)

_DRAWN_SEED_BITS = 32  # exact in every JSON reader


@dataclass(slots=True)
class OpenContext:
    """A context without a terminal message."""

    name: str
    pipeline: ContextPipeline
    task: asyncio.Task[None]


class Contexts:
    """`tasks`: where each context's task runs; `wake`: called when there is something for the writer."""

    def __init__(
        self,
        session: ServerSession,
        service: Service,
        share: Share,
        connection: str,
        tasks: asyncio.TaskGroup,
        wake: Callable[[], None],
    ) -> None:
        self._session, self._service, self._share, self._connection = session, service, share, connection
        self._settings, self._clock, self._metrics = service.settings, service.clock, service.metrics
        self._tasks, self._wake = tasks, wake
        self._open: dict[int, OpenContext] = {}
        self._outbox = Outbox(self._settings.limits.unsent_audio_s, wake)
        self._playback = Playback()
        self._voice = SessionVoice(service, tasks, self._refuse_reference)

    @property
    def unsent_audio_s(self) -> float:
        """Audio that waits to be sent."""
        return self._outbox.seconds

    @property
    def playback_ends(self) -> float:
        """When the listener has heard all that was sent."""
        return self._playback.ends

    def states(self) -> Iterator[str]:
        """Of each context the state that `session.progress` would tell."""
        for number, context in self._open.items():
            yield context.pipeline.progress(number == self._session.front)[0]

    def act(self, events: list[Event]) -> None:
        """Do what the session has made of the client's messages."""
        for event in events:
            match event:
                case ContextOpened(number, name, config):
                    self._begin(number, name, config)
                case TextReceived(number, text):
                    self._open[number].pipeline.push(text)
                case FlushRequested(number):
                    self._open[number].pipeline.flush()
                case InputEnded(number, reason):
                    self._open[number].pipeline.end(reason)
                case ContextCancelled(number):
                    self.end(number, "cancelled")
                case ReferenceGiven(reference):
                    self._voice.take(reference)

    def show_progress(self, now: float) -> None:
        """A sign of life of each context that has been silent for long."""
        for number in self._session.silent(now):
            state, position = self._open[number].pipeline.progress(number == self._session.front)
            self._session.progress(number, state, now, position)

    def say_next(self) -> bool:
        """Tell the session the next item of the context whose turn it is; False if there is none."""
        front = self._session.front
        item = None if front is None else self._outbox.take(front)
        if item is not None:
            self._say(front, item)
        return item is not None

    def end(self, number: int, how: str) -> None:
        """The one place where a context ends, whatever the cause: its streams, its task and its audio go."""
        context = self._open.pop(number)
        self._share.close_context()
        context.pipeline.stop()
        context.task.cancel()
        self._outbox.close(number)
        tally = context.pipeline.tally
        self._metrics.context_ended(tally.reason if how == "done" else how, tally)
        log.info(
            "context ended connection=%s context=%s how=%s characters=%d frames=%d metrics=%s",
            self._connection, context.name, how, tally.characters, tally.frames, tally.metrics(),
        )  # fmt: skip

    def end_all(self, how: str) -> None:
        """End those that are still open."""
        for number in list(self._open):
            self.end(number, how)

    # The beginning --------------------------------------------------------------------------------------------------

    def _begin(self, number: int, name: str, config: SessionConfig) -> None:
        around = Surroundings(
            engine=self._service.engine,
            admission=self._service.admission,
            clock=self._clock,
            put=lambda item: self._outbox.put(number, item),
            text_taken=lambda characters: self._session.text_taken(number, characters),
            dry_at=lambda: self._dry_at(number),
            reference=self._voice.of(config),
            earlier=tuple(context.pipeline.generated for context in self._open.values()),
            repetition_penalty=self._settings.sampling.repetition_penalty,
        )
        seed = secrets.randbits(_DRAWN_SEED_BITS) if config.seed is None else config.seed
        pipeline = ContextPipeline(config, self._language(config), seed, around)
        self._outbox.open(number, pipeline.grant)
        running = self._run(number, pipeline, is_within_limit=self._share.open_context())
        task = self._tasks.create_task(running, name=f"{self._connection} context {number}")
        self._open[number] = OpenContext(name, pipeline, task)
        self._metrics.context_opened()

    def _language(self, config: SessionConfig) -> str | None:
        """Of the text: the hint, else the voice's language, else not known."""
        return config.language or self._service.voices.language(config.voice)

    def _dry_at(self, number: int) -> float | None:
        """When a new stream of the context is missed: after all that waits, and what earlier contexts will bring."""
        earlier = sum(context.pipeline.expected_s for other, context in self._open.items() if other < number)
        return self._playback.dry_at(self._outbox.seconds + earlier, self._clock())

    def _refuse_reference(self, error: ClientError) -> None:
        log.info("reference refused connection=%s code=%s", self._connection, error.code)
        self._session.refuse_reference(error.code, error.message)
        self._wake()

    async def _run(self, number: int, pipeline: ContextPipeline, is_within_limit: bool) -> None:
        try:
            if not is_within_limit:
                most = self._settings.limits.key_contexts
                raise TooManyContexts(f"{most} contexts are open, which is the limit of an API key")
            await pipeline.run()
        except Exception as exception:
            error = client_error(exception)
            log.warning("context failed connection=%s context=%d code=%s", self._connection, number, error.code)
            failure = Failure(error, self._settings.retry_after_ms)
            if self._outbox.has_audio(number):
                self._outbox.put(number, failure)
            else:
                self._say(number, failure)
                self._wake()

    # Speaking -------------------------------------------------------------------------------------------------------

    def _say(self, number: int, item: Item) -> None:
        """Tell the session that an item is sent."""
        now = self._clock()
        if isinstance(item, AudioPiece):
            self._count_audio(item, now)
        item.say(self._session, number, now)
        if item.seconds:
            self._playback.sent(item.seconds, now)
        if item.ends:
            self.end(number, item.ends)

    def _count_audio(self, piece: AudioPiece, now: float) -> None:
        """An underrun is what a listener waits within a context, once there was text to speak."""
        begun = piece.tally.heard_at is not None
        self._metrics.audio_sent(
            piece.seconds, self._playback.dry_for(piece.speech.submitted_at, now) if begun else 0.0
        )
