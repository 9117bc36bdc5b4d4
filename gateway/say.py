"""The `say` command: streams words to a running gateway and plays the speech, or writes it to a file."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import orjson
import websockets
from websockets.asyncio.client import ClientConnection, connect

from gateway.keys import is_key
from gateway.options import SayOptions
from gateway.sinks import Sink, SinkError, open_sink
from gateway.words import words

_ENDPOINT = "/v1/stream"
_CONTEXT = "say"
_SAMPLE_BYTES = 2
_CHUNKS_AHEAD = 64  # received but not yet played; a full queue stops reading, and then the gateway pauses
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
    except (SayError, SinkError) as error:
        progress.end()
        print(f"audio8-gateway say: {error}", file=sys.stderr)
        return FAILED
    progress.end()
    return OK


def endpoint_url(url: str) -> str:
    """`url` of a gateway as a WebSocket address: http is taken too, and the path may be left out."""
    parts = urlsplit(url)
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    if scheme not in ("ws", "wss") or not parts.hostname:
        raise SayError(f"{url!r} is no address of a gateway: it looks like ws://127.0.0.1:8080")
    return urlunsplit((scheme, parts.netloc, parts.path.rstrip("/") or _ENDPOINT, parts.query, ""))


class Progress:
    """One line on a terminal that tells how far the speech is; silent where there is no terminal."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._shown = False
        self._on = stream.isatty()

    def show(self, first_audio_s: float, speech_s: float) -> None:
        """Renew the line: seconds until the first audio, and seconds of speech so far."""
        if self._on:
            self._stream.write(f"\rfirst audio after {first_audio_s * 1000:.0f} ms, {speech_s:.1f} s of speech")
            self._stream.flush()
            self._shown = True

    def end(self) -> None:
        """Leave the line."""
        if self._shown:
            self._stream.write("\n")
            self._shown = False


async def _say(options: SayOptions, progress: Progress) -> None:
    url = endpoint_url(options.url)
    shown = url.partition("?")[0]  # the query may hold a key
    try:
        async with connect(url, max_size=None, compression=None, additional_headers=_headers(options)) as socket:
            await _Conversation(socket, options, progress).run()
    except OSError as error:
        raise SayError(f"no gateway at {shown} ({error}); `audio8-gateway serve` starts one") from error
    except websockets.InvalidStatus as error:
        raise SayError(f"the gateway refused: {_refusal(error.response)}") from error
    except websockets.InvalidHandshake as error:
        raise SayError(f"there is no gateway at {shown}: {error}") from error
    except websockets.ConnectionClosed as error:
        raise SayError(f"the gateway closed the connection: {error}") from error


class _Conversation:
    """One text over one connection."""

    def __init__(self, socket: ClientConnection, options: SayOptions, progress: Progress) -> None:
        self._socket = socket
        self._options = options
        self._progress = progress
        self._started_at: float | None = None  # when the first word was sent
        self._first_audio_s = 0.0
        self._samples_received = 0
        self._room = 0  # characters that the gateway still takes
        self._has_room = asyncio.Event()
        self._audio: asyncio.Queue[bytes | None] = asyncio.Queue(_CHUNKS_AHEAD)
        self._sink: Sink | None = None
        self._reason = ""  # why the context has ended

    async def run(self) -> None:
        """Speak to the end; raises `SayError` or `SinkError`, falls silent and cancels when interrupted."""
        ready = await self._receive_event()
        self._give_room(ready["limits"]["text_characters"])
        self._sample_rate = self._options.sample_rate or ready["sample_rate"]
        await self._configure()
        try:
            await self._converse()
        except asyncio.CancelledError:
            self._abort_sink()
            await self._cancel()
            raise
        if self._reason != "done":
            raise SayError(f"the speech is not complete, the gateway ended it: {_REASONS[self._reason]}")

    async def _converse(self) -> None:
        """Send, receive and play at the same time."""
        try:
            async with asyncio.TaskGroup() as tasks:
                sender = tasks.create_task(self._send_words(), name="send")
                tasks.create_task(self._play(), name="play")
                await self._receive()
                sender.cancel()  # a context may end before its text does
        except* (SayError, SinkError, websockets.ConnectionClosed) as group:
            self._abort_sink()
            raise group.exceptions[0] from None

    async def _configure(self) -> None:
        """Agree on format and voice."""
        config: dict[str, Any] = {"response_format": "pcm", "sample_rate": self._sample_rate, "framing": "bare"}
        if self._options.voice is not None:
            config["voice"] = self._options.voice
        await self._send("session.config", **config)
        while (await self._receive_event())["type"] != "session.configured":
            pass

    async def _send_words(self) -> None:
        """One message a word, as fast as they come and the gateway has room."""
        async for word in words(self._options.text):
            while self._room < len(word):
                self._has_room.clear()
                await self._has_room.wait()
            self._room -= len(word)
            if self._started_at is None:
                self._started_at = time.monotonic()
            await self._send("input.text", text=word, context_id=_CONTEXT)
        await self._send("input.done", context_id=_CONTEXT)

    async def _receive(self) -> None:
        """Take audio and events until the context has ended."""
        while True:
            message = await self._socket.recv()
            if isinstance(message, bytes):
                self._note_audio(message)
                await self._audio.put(message)
                continue
            event = _event(message)
            if event["type"] == "audio.segment":
                self._give_room(len(event["text"]))
            elif event["type"] == "session.done":
                self._reason = event["reason"]
                await self._audio.put(None)
                return

    async def _play(self) -> None:
        """Hand the audio to the sink, in a thread since the sink takes it at the speed of sound."""
        self._sink = open_sink(self._options.output, self._sample_rate)
        while (samples := await self._audio.get()) is not None:
            await asyncio.to_thread(self._sink.write, samples)
        await asyncio.to_thread(self._sink.close)
        self._sink = None

    def _give_room(self, characters: int) -> None:
        self._room += characters
        self._has_room.set()

    def _note_audio(self, samples: bytes) -> None:
        if not self._samples_received:
            self._first_audio_s = time.monotonic() - (self._started_at or time.monotonic())
        self._samples_received += len(samples) // _SAMPLE_BYTES
        self._progress.show(self._first_audio_s, self._samples_received / self._sample_rate)

    async def _cancel(self) -> None:
        """Tell the gateway to stop, and see that it did."""
        try:
            async with asyncio.timeout(_CANCEL_TIMEOUT_S):
                await self._send("input.cancel", context_id=_CONTEXT)
                while (await self._receive_event())["type"] not in ("input.cancelled", "session.done"):
                    pass
        except (TimeoutError, websockets.ConnectionClosed, SayError):
            return  # the connection is closed next, which stops it as well

    def _abort_sink(self) -> None:
        if self._sink is not None:
            self._sink.abort()

    async def _receive_event(self) -> dict[str, Any]:
        """The next event; audio before it is dropped."""
        while isinstance(message := await self._socket.recv(), bytes):
            pass
        return _event(message)

    async def _send(self, type_: str, **fields: Any) -> None:
        await self._socket.send(orjson.dumps({"type": type_, **fields}), text=True)


def _headers(options: SayOptions) -> dict[str, str]:
    if options.api_key is None:
        return {}
    if not is_key(options.api_key):
        raise SayError("the API key has characters that no key has")
    return {"Authorization": f"Bearer {options.api_key}"}


def _event(message: str) -> dict[str, Any]:
    """The decoded message; an error event is raised as `SayError`."""
    event = orjson.loads(message)
    if event["type"] == "error":
        raise SayError(f"{event['message']} ({event['code']})")
    return event


def _refusal(response: websockets.Response) -> str:
    """What the gateway says in a refused handshake: its JSON body, else the status."""
    try:
        return orjson.loads(response.body)["message"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return f"status {response.status_code}"
