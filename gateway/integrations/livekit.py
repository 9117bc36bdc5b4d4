"""A LiveKit Agents `tts.TTS` over the gateway's own protocol: exact interruption, and a transcript aligned by segments.

    from gateway.integrations.livekit import TTS

    session = AgentSession(tts=TTS(url="ws://127.0.0.1:8080/v1/stream", voice="aria"), …)

A stream that is closed, as LiveKit does when its listener interrupts, cancels its speech on the gateway at once, and
the connection serves the next one: what still was on its way is fenced off by the protocol.
"""

from __future__ import annotations

import asyncio
import logging

from livekit.agents import APIConnectionError, APIConnectOptions, APIError, APIStatusError, APITimeoutError, tts, utils
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, TimedString

from protocol.client import Client, ContextResult, SpeechContext, SpeechError, connect
from protocol.codes import ErrorCode

log = logging.getLogger(__name__)

_BYTES_PER_SAMPLE = 2
_SILENCE_S = 0.02
_BAD_REQUEST = 400
_STATUS = {
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.FORBIDDEN_ORIGIN: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.INTERNAL: 500,
    ErrorCode.ENGINE_FAILED: 503,
    ErrorCode.OVERLOADED: 503,
    ErrorCode.SHUTTING_DOWN: 503,
    ErrorCode.STAGE_TIMEOUT: 504,
}
_WRONG_REQUEST = {
    ErrorCode.BAD_VALUE,
    ErrorCode.UNKNOWN_FIELD,
    ErrorCode.UNKNOWN_VOICE,
    ErrorCode.TEXT_TOO_LONG,
    ErrorCode.TOO_MANY_CONTEXTS,
}


class TTS(tts.TTS):
    """Speech of the gateway at `url` (`ws://…/v1/stream`), 16 bit, one channel.

    `api_key` is sent as `Authorization: Bearer`.  `voice` and `language` None: as the gateway is set up.
    `sample_rate`: of all audio, in Hz.  `config`: further keys of `session.config`, such as `speed`, but for
    `response_format`.
    """

    def __init__(
        self,
        *,
        url: str,
        api_key: str | None = None,
        voice: str | None = None,
        language: str | None = None,
        sample_rate: int = 24000,
        **config: object,
    ) -> None:
        if "response_format" in config:
            raise TypeError("response_format is the adapter's own choice")
        capabilities = tts.TTSCapabilities(streaming=True, aligned_transcript=True)
        super().__init__(capabilities=capabilities, sample_rate=sample_rate, num_channels=1)
        self._url, self._api_key = url, api_key
        self._config = {**config, "response_format": "pcm", "sample_rate": sample_rate}
        self._opening: dict[str, str | None] = {"voice": voice, "language": language}
        self._model = "unknown"
        self._pool = utils.ConnectionPool[Client](connect_cb=self._connect, close_cb=Client.close)

    @property
    def model(self) -> str:
        """The gateway's model, "unknown" until the first connection."""
        return self._model

    @property
    def provider(self) -> str:
        return "Audio8"

    def update_options(self, *, voice: str | None = None, language: str | None = None) -> None:
        """From the next stream on; what is None stays as it is."""
        given = {"voice": voice, "language": language}
        self._opening.update({key: value for key, value in given.items() if value is not None})

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.ChunkedStream:
        return self._synthesize_with_stream(text, conn_options=conn_options)

    def stream(self, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS) -> SynthesizeStream:
        return SynthesizeStream(self, conn_options, dict(self._opening))

    def prewarm(self) -> None:
        self._pool.prewarm()

    async def aclose(self) -> None:
        """Close all connections, and with them whatever still speaks."""
        await self._pool.aclose()

    async def _connect(self, timeout: float) -> Client:
        async with asyncio.timeout(timeout):
            client = await connect(self._url, self._api_key, **self._config)
        self._model = client.ready.model
        return client


class SynthesizeStream(tts.SynthesizeStream):
    """One turn: text is pushed, audio is iterated.  It has a connection of the pool while there is something to say.

    Raises APIStatusError for what the gateway refuses or fails at, with its code in `body`, APIConnectionError, and
    APITimeoutError where no audio comes for `conn_options.timeout` seconds once all text is there.
    """

    def __init__(self, owner: TTS, conn_options: APIConnectOptions, opening: dict[str, str | None]) -> None:
        super().__init__(tts=owner, conn_options=conn_options)
        self._owner, self._opening = owner, opening

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        name = utils.shortuuid("speech_")
        output_emitter.initialize(
            request_id=name, sample_rate=self._owner.sample_rate, num_channels=1, mime_type="audio/pcm", stream=True
        )
        output_emitter.start_segment(segment_id=name)
        async for first in self._input_ch:
            if isinstance(first, str):
                await self._speak(first, output_emitter)
                return

    async def _speak(self, first: str, output_emitter: tts.AudioEmitter) -> None:
        """All text from `first` on, on a connection that is put back even if this is cancelled."""
        pool, seconds = self._owner._pool, self._conn_options.timeout
        self._mark_started()
        try:
            client = await pool.get(timeout=seconds)
            self._acquire_time, self._connection_reused = pool.last_acquire_time, pool.last_connection_reused
            try:
                async with client.context(**self._opening) as context, asyncio.timeout(None) as patience:
                    await self._converse(context, first, output_emitter, patience)
            finally:
                (pool.remove if client.closed else pool.put)(client)
        except TimeoutError as error:
            raise APITimeoutError(f"nothing came from the gateway for {seconds:g} s") from error
        except SpeechError as error:
            raise _api_error(error) from error

    async def _converse(
        self, context: SpeechContext, first: str, output_emitter: tts.AudioEmitter, patience: asyncio.Timeout
    ) -> None:
        """Text there and audio back at the same time, with the text of each segment before its audio."""
        pushing = asyncio.create_task(self._push(context, first, patience), name="speech text")
        announced = 0
        try:
            async for chunk in context:
                if patience.when() is not None:
                    self._be_patient(patience)
                for segment in context.segments[announced:]:
                    timed = TimedString(segment.text, start_time=segment.start / chunk.sample_rate)
                    output_emitter.push_timed_transcript(timed)
                    announced += 1
                output_emitter.push(chunk.data)
            self._end(context.result, output_emitter)
            await pushing
        finally:
            pushing.cancel()
            await asyncio.gather(pushing, return_exceptions=True)

    async def _push(self, context: SpeechContext, first: str, patience: asyncio.Timeout) -> None:
        await context.send(first)
        async for item in self._input_ch:
            if isinstance(item, str):
                await context.send(item)
            elif not self._input_ch.closed:  # else the end flushes
                await context.flush()
        await context.done()
        self._be_patient(patience)

    def _be_patient(self, patience: asyncio.Timeout) -> None:
        patience.reschedule(asyncio.get_running_loop().time() + self._conn_options.timeout)

    def _end(self, result: ContextResult, output_emitter: tts.AudioEmitter) -> None:
        """Raises APITimeoutError if the gateway ended the speech since no text came for too long."""
        if result.reason == "idle":
            message = "no text came for too long, so the gateway ended the speech"
            raise APITimeoutError(message, retryable=False)
        if result.reason == "max_length":
            log.warning("a segment did not find its end, and was cut at the longest that its text can be")
        if not result.samples:  # of text without a word, such as an emoji: LiveKit takes no audio for a failure
            samples = round(_SILENCE_S * self._owner.sample_rate)
            output_emitter.push(bytes(samples * _BYTES_PER_SAMPLE))
        self._set_token_usage(input_tokens=result.usage["input_tokens"], output_tokens=result.usage["audio_frames"])


def _api_error(error: SpeechError) -> APIError:
    """As LiveKit's plugins tell it, which decides whether it is tried again: by the status."""
    status = _BAD_REQUEST if error.code in _WRONG_REQUEST else _STATUS.get(error.code)
    if status is None:
        return APIConnectionError(str(error))
    return APIStatusError(str(error), status_code=status, body={"code": error.code, "message": error.message})
