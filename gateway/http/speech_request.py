"""One HTTP request for speech while it is served: a session of one context, whose frames are the body of the answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from aiohttp import web

from gateway.admission import Share
from gateway.errors import client_error
from gateway.http.leaving import leaving
from gateway.http.transports import bounded
from gateway.service import Service
from gateway.session.client_socket import ConnectionOver
from gateway.session.contexts import Contexts
from protocol.codes import ErrorCode
from protocol.compat.answer import Answer, Failure
from protocol.config import SessionConfig
from protocol.events import ReferenceGiven
from protocol.messages import Done, Text
from protocol.reference import GivenReference
from protocol.session import ServerSession

log = logging.getLogger(__name__)

_NOTHING_TO_SPEAK = "there is nothing in the text that could be spoken"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for.  `reference`: the recording of `config.ref_audio`, if there is one."""

    text: str
    config: SessionConfig
    reference: GivenReference | None
    answer: Answer


class SpeechRequest:
    """The header of the answer is sent with the first piece of its body: until then a failure is told by a status."""

    def __init__(
        self, request: web.Request, asked: Asked, session: ServerSession, service: Service, share: Share, name: str
    ) -> None:
        self._request, self._asked, self._session, self._name = request, asked, session, name
        self._service, self._settings = service, service.settings
        self._tasks = asyncio.TaskGroup()
        self._something_new = asyncio.Event()
        self._contexts = Contexts(session, service, share, name, self._tasks, self._something_new.set)
        self._response: web.StreamResponse | None = None
        self._is_over = False

    async def run(self) -> web.StreamResponse | Failure:
        """Speak; returns the answer, or why there is none."""
        over = ConnectionOver("ended")
        with leaving(self._request) as left:
            try:
                async with self._tasks as tasks:
                    tasks.create_task(self._notice(left), name=f"{self._name} leaving")
                    tasks.create_task(self._answer(), name=f"{self._name} answer")
            except* ConnectionOver as group:
                over, *_ = [each.bare() for each in group.exceptions]
            except* Exception as group:
                error = client_error(group)
                self._asked.answer.error(error.code, "an internal error ended the request")
                over = ConnectionOver("internal error")
            finally:
                self._is_over = True
                self._contexts.end_all("disconnected" if self._asked.answer.failure is None else "failed")
        log.info("request over connection=%s why=%s", self._name, over)
        return self._end(over)

    @property
    def unsent_audio_s(self) -> float:
        """Audio that waits to be sent."""
        return self._contexts.unsent_audio_s

    def context_states(self) -> Iterator[str]:
        """Of its context, if it is open, the state that `session.progress` would tell."""
        return self._contexts.states()

    def wind_down(self, message: str) -> None:
        """The server is about to end: what is being spoken may end first."""
        self._session.wind_down(message)

    def shut_down(self, message: str) -> None:
        """The server ends."""
        if not self._is_over:
            for event in self._session.shut_down(message):
                self._contexts.end(event.number, "failed")
            self._something_new.set()

    def abort(self) -> None:
        """Waits for nothing: the connection goes, and with it all else."""
        if self._request.transport is not None:
            self._request.transport.abort()

    # Tasks ----------------------------------------------------------------------------------------------------------

    async def _notice(self, left: asyncio.Event) -> None:
        await left.wait()
        raise ConnectionOver("closed by the client", abort=True)

    async def _answer(self) -> None:
        """Until all is said, which raises ConnectionOver as a client does that takes no more."""
        self._begin()
        while True:
            for frame in self._asked.answer.take():
                await self._send(frame.data)
            if self._asked.answer.is_over:
                raise ConnectionOver("answered")
            self._something_new.clear()
            if not self._contexts.say_next():
                await self._something_new.wait()

    def _begin(self) -> None:
        if self._asked.reference is not None:
            self._contexts.act([ReferenceGiven(self._asked.reference)])
        now = self._service.clock()
        self._contexts.act(self._session.receive([Text(self._asked.text)], now))
        if not self._asked.answer.is_over:
            self._contexts.act(self._session.receive([Done()], now))

    async def _send(self, data: bytes) -> None:
        """Until the client has taken it, but for what the buffers hold."""
        try:
            async with asyncio.timeout(self._settings.limits.write_stall_s):
                if self._response is None:
                    bounded(self._request.transport, self._settings.send_buffer_bytes)
                    self._response = self._header()
                    await self._response.prepare(self._request)
                await self._response.write(data)
            self._service.metrics.sent(len(data))
        except TimeoutError:
            self._service.metrics.error(ErrorCode.SLOW_CONSUMER)
            raise ConnectionOver(f"{ErrorCode.SLOW_CONSUMER}: the client took no more", abort=True) from None
        except ConnectionError:
            raise ConnectionOver("lost", abort=True) from None

    def _header(self) -> web.StreamResponse:
        headers = {
            "Content-Type": self._asked.answer.content_type,
            "Cache-Control": "no-store",
            "X-Request-Id": self._name,
            "X-Accel-Buffering": "no",  # a proxy that would collect the audio: nginx has it so
        }
        return web.StreamResponse(headers=headers)

    # End ------------------------------------------------------------------------------------------------------------

    def _end(self, over: ConnectionOver) -> web.StreamResponse | Failure:
        answer = self._asked.answer
        if over.abort:
            self.abort()
            return self._response or web.Response()  # nobody is left to be answered
        if self._response is None:
            return answer.failure or Failure(ErrorCode.BAD_VALUE, _NOTHING_TO_SPEAK)
        if answer.failure is not None:
            self._service.metrics.error(answer.failure.code)
        if not answer.is_whole and self._request.transport is not None:
            self._request.transport.close()  # without the end of the body, so that the client knows
        return self._response
