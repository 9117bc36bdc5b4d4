"""One connection of the native protocol: a reader, a writer, a clock, and one pipeline for each open context."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from aiohttp import WSMessage, WSMsgType

from gateway.admission import Share
from gateway.client_socket import ClientSocket, is_too_big
from gateway.errors import TooManyContexts, client_error
from gateway.outbox import Outbox, Playback
from gateway.pipeline import ContextPipeline, Surroundings
from gateway.service import Service
from gateway.utterance import AudioPiece, Failure, Item
from protocol.codes import CloseCode, ErrorCode
from protocol.config import SessionConfig
from protocol.events import ContextCancelled, ContextOpened, Event, FlushRequested, InputEnded, TextReceived
from protocol.session import Closing, ServerSession

log = logging.getLogger(__name__)

_DRAWN_SEED_BITS = 32  # exact in every JSON reader
_HEARD_OUT_S = 0.5  # for the rest of a message that is too big: closed on it, the other side may not get to read why


class ConnectionOver(Exception):
    """The connection has ended; `abort`: the socket takes no more, so nothing more can be sent."""

    def __init__(self, why: str, abort: bool = False) -> None:
        super().__init__(why)
        self.abort = abort

    def bare(self) -> ConnectionOver:
        """Without a traceback: its frames, with the audio in them, would stay until the next collection."""
        self.__traceback__ = self.__context__ = None
        return self


@dataclass(slots=True)
class OpenContext:
    """A context without a terminal message."""

    name: str
    pipeline: ContextPipeline
    task: asyncio.Task[None]


class Connection:
    """Runs a session over a socket that is open."""

    def __init__(
        self,
        socket: ClientSocket,
        transport: asyncio.Transport,
        session: ServerSession,
        service: Service,
        share: Share,
        name: str,
    ) -> None:
        self._socket, self._transport, self._session, self._name = socket, transport, session, name
        self._service, self._settings, self._clock = service, service.settings, service.clock
        self._share = share
        self._metrics = service.metrics
        self._tasks = asyncio.TaskGroup()
        self._contexts: dict[int, OpenContext] = {}
        self._wake = asyncio.Event()
        self._drained = asyncio.Event()  # few enough frames wait to be sent: the reader may go on
        self._outbox = Outbox(self._settings.limits.unsent_audio_s, self._wake.set)
        self._playback = Playback()
        self._pong: bytes | None = None  # the answer that is owed to the client's latest ping (RFC 6455, section 5.5.3)
        self._must_ping = False
        self._heard_at = self._clock()
        self._pinged_at: float | None = None
        self._is_deaf = False  # what comes is not read any more
        self._is_over = False

    async def run(self) -> None:
        """Until either side ends it.  Frees all that it holds, whatever the cause."""
        over = ConnectionOver("ended")
        try:
            async with self._tasks as tasks:
                tasks.create_task(self._read(), name=f"{self._name} reader")
                tasks.create_task(self._write(), name=f"{self._name} writer")
                tasks.create_task(self._tick(), name=f"{self._name} clock")
        except* ConnectionOver as group:
            over, *_ = [each.bare() for each in group.exceptions]
        except* Exception as group:
            over = await self._fail(group)
        finally:
            self._is_over = True
            for number in list(self._contexts):
                self._end_context(number, "disconnected")
            await self._close(over)

    @property
    def unsent_audio_s(self) -> float:
        """Audio that waits to be sent."""
        return self._outbox.seconds

    def context_states(self) -> Iterator[str]:
        """Of each open context the state that `session.progress` would tell."""
        for number, context in self._contexts.items():
            yield context.pipeline.progress(number == self._session.front)[0]

    def wind_down(self, message: str) -> None:
        """The server is about to end: what is open may end first."""
        self._session.wind_down(message)
        self._wake.set()

    def shut_down(self, message: str) -> None:
        """The server ends."""
        if not self._is_over:
            for event in self._session.shut_down(message):
                self._end_context(event.number, "failed")
            self._wake.set()

    def abort(self) -> None:
        """Waits for nothing: the socket goes, and with it all else."""
        self._transport.abort()

    # Reader ---------------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            message = await self._socket.receive()
            self._heard_at, self._pinged_at = self._clock(), None
            self._is_deaf = is_too_big(message)
            self._act(self._session.receive_too_big() if self._is_deaf else self._events(message))
            self._wake.set()
            if self._is_deaf:
                return
            if self._session.waiting_frames > self._settings.waiting_frames:
                self._drained.clear()
                await self._drained.wait()
            await asyncio.sleep(0)  # a client that sends without pause must not keep others from their turn

    def _events(self, message: WSMessage) -> list[Event]:
        match message.type:
            case WSMsgType.TEXT:
                return self._session.receive_text(message.data, self._heard_at)
            case WSMsgType.BINARY:
                return self._session.receive_binary(self._heard_at)
            case WSMsgType.PING:
                self._pong = message.data
                return []
            case WSMsgType.PONG:
                return []
            case _:
                raise ConnectionOver("closed by the client")

    def _act(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case ContextOpened(number, name, config):
                    self._open_context(number, name, config)
                case TextReceived(number, text):
                    self._contexts[number].pipeline.push(text)
                case FlushRequested(number):
                    self._contexts[number].pipeline.flush()
                case InputEnded(number, reason):
                    self._contexts[number].pipeline.end(reason)
                case ContextCancelled(number):
                    self._end_context(number, "cancelled")

    # Contexts -------------------------------------------------------------------------------------------------------

    def _open_context(self, number: int, name: str, config: SessionConfig) -> None:
        around = Surroundings(
            engine=self._service.engine,
            admission=self._service.admission,
            clock=self._clock,
            put=lambda item: self._outbox.put(number, item),
            text_taken=lambda characters: self._session.text_taken(number, characters),
            dry_at=lambda: self._dry_at(number),
            repetition_penalty=self._service.settings.sampling.repetition_penalty,
        )
        seed = secrets.randbits(_DRAWN_SEED_BITS) if config.seed is None else config.seed
        pipeline = ContextPipeline(config, self._language(config), seed, around)
        self._outbox.open(number, pipeline.grant)
        running = self._run_context(number, pipeline, is_within_limit=self._share.open_context())
        task = self._tasks.create_task(running, name=f"{self._name} context {number}")
        self._contexts[number] = OpenContext(name, pipeline, task)
        self._metrics.context_opened()

    def _dry_at(self, number: int) -> float | None:
        """When a new stream of the context is missed: after all that waits, and what earlier contexts will bring."""
        earlier = sum(context.pipeline.expected_s for other, context in self._contexts.items() if other < number)
        return self._playback.dry_at(self._outbox.seconds + earlier, self._clock())

    def _language(self, config: SessionConfig) -> str:
        """By whose rules the text is cut: the hint, else the voice's language, else English."""
        voices = {voice.name: voice.language for voice in self._service.engine.info.voices}
        return config.language or voices.get(config.voice) or "en"

    async def _run_context(self, number: int, pipeline: ContextPipeline, is_within_limit: bool) -> None:
        try:
            if not is_within_limit:
                most = self._settings.limits.key_contexts
                raise TooManyContexts(f"{most} contexts are open, which is the limit of an API key")
            await pipeline.run()
        except Exception as exception:
            error = client_error(exception)
            log.warning("context failed connection=%s context=%d code=%s", self._name, number, error.code)
            failure = Failure(error, self._settings.retry_after_ms)
            if self._outbox.has_audio(number):
                self._outbox.put(number, failure)
            else:
                self._say(number, failure)
                self._wake.set()

    def _say(self, number: int, item: Item) -> None:
        """Tell the session that an item is sent."""
        now = self._clock()
        if isinstance(item, AudioPiece):
            self._count_audio(item, now)
        item.say(self._session, number, now)
        if item.seconds:
            self._playback.sent(item.seconds, now)
        if item.ends:
            self._end_context(number, item.ends)

    def _count_audio(self, piece: AudioPiece, now: float) -> None:
        """An underrun is what a listener waits within a context, once there was text to speak."""
        begun = piece.tally.heard_at is not None
        self._metrics.audio_sent(
            piece.seconds, self._playback.dry_for(piece.speech.submitted_at, now) if begun else 0.0
        )

    def _end_context(self, number: int, how: str) -> None:
        """The one place where a context ends, whatever the cause: its streams, its task and its audio go."""
        context = self._contexts.pop(number)
        self._share.close_context()
        context.pipeline.stop()
        context.task.cancel()
        self._outbox.close(number)
        tally = context.pipeline.tally
        self._metrics.context_ended(tally.reason if how == "done" else how, tally)
        log.info(
            "context ended connection=%s context=%s how=%s characters=%d frames=%d metrics=%s",
            self._name, context.name, how, tally.characters, tally.frames, tally.metrics(),
        )  # fmt: skip

    # Writer ---------------------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        """Pings, then messages, then the next piece of audio: one at a time, so that the former never wait for long."""
        while True:
            await self._send_controls()
            await self._send_frames()
            if self._session.waiting_frames <= self._settings.waiting_frames // 2:
                self._drained.set()
            if self._has_controls or self._session.waiting_frames:
                continue
            if self._session.closing:
                raise ConnectionOver("closed by the server")
            if not self._say_next():
                self._wake.clear()
                await self._wake.wait()

    @property
    def _has_controls(self) -> bool:
        return self._must_ping or self._pong is not None

    async def _send_controls(self) -> None:
        """Ping and pong of the socket."""
        if self._pong is not None:
            data, self._pong = self._pong, None
            await self._send(data, WSMsgType.PONG)
        if self._must_ping:
            self._must_ping = False
            await self._send(b"", WSMsgType.PING)

    async def _send_frames(self) -> None:
        for frame in self._session.take_frames():
            if frame.error is not None:
                self._metrics.error(frame.error)
            await self._send(frame.data, WSMsgType.BINARY if frame.binary else WSMsgType.TEXT)

    def _say_next(self) -> bool:
        """Move the next item of the context whose turn it is; False if there is none."""
        front = self._session.front
        item = None if front is None else self._outbox.take(front)
        if item is not None:
            self._say(front, item)
        return item is not None

    async def _send(self, data: bytes, kind: WSMsgType) -> None:
        """Until the socket has taken it."""
        try:
            async with asyncio.timeout(self._settings.limits.write_stall_s):
                await self._socket.send_frame(data, kind)
            self._metrics.sent(len(data))
        except TimeoutError:
            self._metrics.error(ErrorCode.SLOW_CONSUMER)
            raise ConnectionOver(f"{ErrorCode.SLOW_CONSUMER}: the socket took no more", abort=True) from None
        except ConnectionError:
            raise ConnectionOver("lost", abort=True) from None

    # Clock ----------------------------------------------------------------------------------------------------------

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._settings.tick_s)
            now = self._clock()
            self._act(self._session.tick(now))
            for number in self._session.silent(now):
                state, position = self._contexts[number].pipeline.progress(number == self._session.front)
                self._session.progress(number, state, now, position)
            self._check_life(now)
            if self._session.waiting_frames or self._has_controls:
                self._wake.set()

    def _check_life(self, now: float) -> None:
        """Ping a silent client; a client that does not answer is gone.

        One that reads no faster than it plays comes upon the ping behind all the audio that its buffers hold.
        """
        limits = self._settings.limits
        if self._pinged_at is not None and now - max(self._pinged_at, self._playback.ends) >= limits.ping_timeout_s:
            raise ConnectionOver("no answer to a ping", abort=True)
        if self._pinged_at is None and now - self._heard_at >= limits.ping_interval_s:
            self._pinged_at = now
            self._must_ping = True

    # End ------------------------------------------------------------------------------------------------------------

    async def _fail(self, group: BaseExceptionGroup) -> ConnectionOver:
        """A bug of ours ended the tasks: say so as far as that is possible."""
        error = client_error(group)
        self._act(self._session.fail_session(error.code, CloseCode.INTERNAL, "an internal error ended the connection"))
        try:
            await self._send_frames()
        except ConnectionOver as over:
            return over
        return ConnectionOver("internal error")

    async def _close(self, over: ConnectionOver) -> None:
        log.info("connection over connection=%s why=%s", self._name, over)
        closing = self._session.closing or Closing(CloseCode.INTERNAL, "")
        if not over.abort:
            if self._is_deaf:
                await asyncio.sleep(_HEARD_OUT_S)
            try:
                async with asyncio.timeout(self._settings.close_s):
                    await self._socket.close(code=closing.code, message=closing.reason.encode())
                return
            except (TimeoutError, ConnectionError):
                log.info("client does not close connection=%s", self._name)
        self._transport.abort()
