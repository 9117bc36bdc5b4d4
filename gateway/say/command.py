"""The `say` command: streams words to a running gateway and plays the speech, or writes it to a file."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from gateway.address import AddressError, endpoint_url
from gateway.advice import with_advice
from gateway.keys import is_key
from gateway.options import SayOptions
from gateway.say.sinks import SinkError, open_sink, response_format
from gateway.say.words import words
from protocol.client import AudioChunk, Client, SpeechContext, SpeechError, connect

_CANCEL_TIMEOUT_S = 2.0
_REASONS = {
    "max_length": "a sentence reached the limit of its length",
    "idle": "no text came for too long",
}

OK, FAILED, INTERRUPTED = 0, 1, 130


class SayError(Exception):
    """Why the text could not be spoken, for the person at the terminal."""


def say(options: SayOptions) -> int:
    """Speak; returns the exit status: 0 spoken, 1 failed with a message on standard error, 130 interrupted."""
    progress = Progress(sys.stderr)
    try:
        asyncio.run(_say(options, progress))
    except KeyboardInterrupt:
        progress.end()
        return INTERRUPTED
    except (SayError, SinkError, AddressError) as error:
        progress.end()
        print(f"audio8-gateway say: {error}", file=sys.stderr)
        return FAILED
    progress.end()
    return OK


class Progress:
    """One line on a terminal that tells how far the speech is; silent where there is no terminal."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._shown = False
        self._on = stream.isatty()
        self._started_at: float | None = None  # when the first word was sent
        self._first_audio_s: float | None = None
        self._speech_s = 0.0

    async def noting(self, pieces: AsyncIterator[str]) -> AsyncIterator[str]:
        """The same pieces; when the first comes is noted."""
        async for piece in pieces:
            self._started_at = self._started_at or time.monotonic()
            yield piece

    def show(self, chunk: AudioChunk) -> None:
        """Renew the line: how long the first audio took, and seconds of speech with this chunk."""
        if self._first_audio_s is None:
            self._first_audio_s = time.monotonic() - self._started_at
        if self._on:
            self._speech_s += chunk.seconds
            told = f"first audio after {self._first_audio_s * 1000:.0f} ms, {self._speech_s:.1f} s of speech"
            self._stream.write(f"\r{told}")
            self._stream.flush()
            self._shown = True

    def end(self) -> None:
        """Leave the line."""
        if self._shown:
            self._stream.write("\n")
            self._shown = False


async def _say(options: SayOptions, progress: Progress) -> None:
    url = endpoint_url(options.url)
    if options.api_key is not None and not is_key(options.api_key):
        raise SayError("the API key has characters that no key has")
    given = {"voice": options.voice, "sample_rate": options.sample_rate}
    config = {key: value for key, value in given.items() if value is not None}
    config["response_format"] = response_format(options.output)
    try:
        async with connect(url, options.api_key, **config) as client:
            await _speak(client, options, progress)
    except SpeechError as error:
        raise SayError(with_advice(error)) from error


async def _speak(client: Client, options: SayOptions, progress: Progress) -> None:
    """Send, receive and play at the same time; falls silent and cancels when interrupted."""
    sink = open_sink(options.output, client.config["sample_rate"])
    context = client.context()
    sending = asyncio.create_task(context.speak(progress.noting(words(options.text))), name="send")
    try:
        async for chunk in context:
            progress.show(chunk)
            await asyncio.to_thread(sink.write, chunk.data)  # it takes the audio at the speed of sound
        await asyncio.to_thread(sink.close)
    except BaseException:
        sink.abort()
        await _cancel(context)
        raise
    finally:
        sending.cancel()  # a context may end before its text does
        (sent,) = await asyncio.gather(sending, return_exceptions=True)
    if context.result is None:
        raise sent
    if context.result.reason != "done":
        raise SayError(f"the speech is not complete, the gateway ended it: {_REASONS[context.result.reason]}")


async def _cancel(context: SpeechContext) -> None:
    """Tell the gateway to stop, and see that it did."""
    try:
        async with asyncio.timeout(_CANCEL_TIMEOUT_S):
            await context.cancel()
    except TimeoutError:
        return  # the connection is closed next, which stops it as well
