"""The gateway as a process: HTTP server, engine, and the order in which they begin and end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from aiohttp import web

from gateway import logs
from gateway.admission import Admission
from gateway.assets import WEB
from gateway.compat.deepgram.routes import add_deepgram
from gateway.compat.elevenlabs.refusals import ELEVENLABS_WORDS
from gateway.compat.elevenlabs.routes import add_elevenlabs
from gateway.compat.models import add_models
from gateway.compat.openai import OPENAI_WORDS, add_openai
from gateway.compat.vllm_omni import VllmOmniDoor
from gateway.engine.engine import Engine
from gateway.engine.stream import EngineError
from gateway.http.door import NativeDoor
from gateway.http.endpoint import StreamEndpoint
from gateway.http.gatekeeper import Gatekeeper
from gateway.http.handshake import HandshakeGuard
from gateway.http.library_errors import json_errors
from gateway.http.listening import ListenError, check_address, listen, tls_context
from gateway.http.metrics_page import add_metrics, counts_refusals
from gateway.http.pages import add_health, add_pages
from gateway.http.running import Running
from gateway.http.speech_endpoint import SpeechEndpoint
from gateway.http.voices_page import add_voices
from gateway.keys import SERVER_VARIABLE, KeysError, load_keys
from gateway.metrics import ServerMetrics
from gateway.options import ServeOptions
from gateway.service import Service
from gateway.settings import Settings
from gateway.voices.coder import VoiceCoder
from gateway.voices.voices import Voices
from inference.deploy import DeployConfig, DeployConfigError

log = logging.getLogger(__name__)

_FAILED_TO_START = 1
_ENDED_BY_SIGNAL = 128  # plus its number, as shells have it
_LAST_REQUESTS_S = 1.0  # for answers that are being sent when all WebSockets are closed
_KEEP_ALIVE_S = 30.0  # between two requests on one connection
_RUNNING = web.AppKey("running", Running)
_GUARD = web.AppKey("guard", HandshakeGuard)
_VOICES = web.AppKey("voices", Voices)


def make_app(engine: Engine, settings: Settings, clock: Callable[[], float] = time.monotonic) -> web.Application:
    """The HTTP application over an engine, which its caller starts and closes.

    `wind_down(app, …)` and `shut_down(app)` come before the runner's clean-up: aiohttp then reads no more, not even the
    answer to a close.
    """
    guard = HandshakeGuard(settings.limits.handshake_s)
    metrics = ServerMetrics()
    words = OPENAI_WORDS | ELEVENLABS_WORDS
    app = web.Application(middlewares=[guard.middleware, counts_refusals(metrics), json_errors(words)])
    admission = Admission(settings.limits)
    voices = Voices(engine, settings.voices_dir, settings.limits.voices)
    service = Service(engine, admission, settings, clock, metrics, voices, VoiceCoder(engine))
    gatekeeper = Gatekeeper(service)
    running = Running(service)
    metrics.look_at(engine, admission, lambda: running.all)
    endpoint = StreamEndpoint(service, gatekeeper, running)
    for door in (NativeDoor(), VllmOmniDoor()):
        app.router.add_get(door.path, endpoint.through(door))
    speech = SpeechEndpoint(service, gatekeeper, running)
    add_openai(app, service, speech)
    add_models(app, service, gatekeeper)
    add_deepgram(app, endpoint, speech)
    add_elevenlabs(app, service, gatekeeper, endpoint, speech)
    add_voices(app, service, gatekeeper)
    add_health(app, engine, admission, voices)
    add_metrics(app, metrics, gatekeeper)
    add_pages(app, WEB)

    app[_RUNNING], app[_GUARD], app[_VOICES] = running, guard, voices
    app.on_shutdown.append(shut_down)
    return app


async def wind_down(app: web.Application, grace_s: float) -> None:
    """Refuse what is new, and let what is being spoken end, for so long at most."""
    await app[_RUNNING].wind_down(grace_s)


async def shut_down(app: web.Application) -> None:
    """Tell all clients that the server ends, and close their connections.  New ones are refused from now on."""
    await app[_RUNNING].shut_down()


def settings_from(deploy: DeployConfig) -> Settings:
    """The deploy config's defaults of a request."""
    connector = deploy.connector
    return Settings(
        sampling=deploy.ar.sampling,
        initial_chunk_frames=connector.initial_chunk_frames,
        chunk_frames=connector.chunk_frames,
    )


def serve(options: ServeOptions) -> int:
    """Run until SIGINT or SIGTERM; returns the exit status.  A second signal ends the process here and now."""
    logs.configure(options.log_level)
    try:
        return asyncio.run(_serve(options))
    except (DeployConfigError, EngineError, KeysError, ListenError, OSError) as error:
        log.error("cannot start: %s", error)
        return _FAILED_TO_START


async def _serve(options: ServeOptions) -> int:
    """Listen at once, speak when the engine can.  The end: contexts, connections, the listener, the engine."""
    keys = load_keys(options.api_keys_file, os.environ.get(SERVER_VARIABLE))
    check_address(options.host, keys is not None, options.allow_anonymous)
    tls = tls_context(options.tls_certificate, options.tls_key)
    engine = Engine(options.model, options.deploy_config, options.device, options.log_level)
    stop = _stop_signal(engine)
    settings = replace(
        settings_from(engine.deploy),
        limits=options.limits,
        keys=keys,
        allowed_origins=options.allowed_origins,
        allowed_hosts=options.allowed_hosts,
        voices_dir=options.voices_dir,
        voice_aliases=options.voice_aliases,
    )
    app = make_app(engine, settings)
    times = {"shutdown_timeout": _LAST_REQUESTS_S, "keepalive_timeout": _KEEP_ALIVE_S}
    runner = web.AppRunner(app, access_log=None, handle_signals=False, **times)
    await runner.setup()
    watching = asyncio.create_task(app[_GUARD].watch(lambda: runner.server.connections), name="handshake guard")
    try:
        handshake_s = options.limits.handshake_s
        with closing(await listen(runner.server, options.host, options.port, tls, handshake_s)) as listener:
            address = f"{'https' if tls else 'http'}://{_shown(options.host)}:{listener.sockets[0].getsockname()[1]}"
            log.info("listening at %s, the model is being loaded", address)
            await _run_engine(engine, app[_VOICES], address, stop)
            await wind_down(app, options.shutdown_grace_s)
    finally:
        watching.cancel()
        await shut_down(app)
        await runner.cleanup()
        await engine.close()
    return 0


async def _run_engine(engine: Engine, voices: Voices, address: str, stop: asyncio.Event) -> None:
    """Start it, say so, and wait for the end; a signal also ends a start that is under way."""
    starting = asyncio.create_task(engine.start(), name="engine start")
    stopping = asyncio.create_task(stop.wait(), name="stop signal")
    try:
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            voices.start()
            gc.collect()
            gc.freeze()  # what is loaded stays: to look at it at each full collection would hold up the loop for 13 ms
            print(f"ready {address}", flush=True)
            await stopping
    finally:
        starting.cancel()
        stopping.cancel()


def _stop_signal(engine: Engine) -> asyncio.Event:
    """Set by the first SIGINT or SIGTERM; the second one ends this process, and those of the stages, at once."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set():
            log.warning("ended at once, by a second signal: %s", number.name)
            engine.kill()
            os._exit(_ENDED_BY_SIGNAL + number)
        log.info("shutting down: %s", number.name)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
    return stop


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
