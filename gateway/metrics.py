"""What `/metrics` tells: all names, labels and buckets.  Times are seconds, labels have closed sets of values.

What happens is counted where it happens, through the methods of `ServerMetrics`; how things stand (`_Standing`) is
looked up when someone asks.
"""

from __future__ import annotations

import asyncio
import platform
from collections import Counter as Tallies
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    Info,
    Metric,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from gateway.admission import Admission
from gateway.engine.engine import Engine
from gateway.session.utterance import Tally
from inference.messages import ARReport, StageReport
from protocol.codes import ErrorCode

CONTEXT_STATES = ("queued", "generating", "waiting_text", "waiting_turn")
STREAM_STATES = ("waiting", "resident", "paused")
REPLICA_STATES = ("ready", "down")
ENDINGS = ("done", "max_length", "idle", "cancelled", "failed", "disconnected")

STEP_S = (0.002, 0.004, 0.006, 0.008, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.25, 1.0)
STEP_ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
CALL_S = (0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.5)
WAIT_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
FIRST_PACKET_S = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
REALTIME_FACTOR = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0, 4.0)
SLACK_S = (-1.0, -0.5, -0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 4.0, 8.0)
LAG_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)

UNDERRUN_S = 0.005  # a shorter gap is none: a player bridges it
_LAG_EVERY_S = 0.5

disable_created_metrics()  # a second series for each of ours, which the text format shows as gauges


class Speaker(Protocol):
    """A connection, as far as its state is told."""

    @property
    def unsent_audio_s(self) -> float:
        """Audio that waits to be sent."""

    def context_states(self) -> Iterable[str]:
        """Of each open context one of CONTEXT_STATES."""


class ServerMetrics:
    """All series of one server, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()

        def counter(name: str, help_text: str, *labels: str) -> Counter:
            return Counter(f"audio8_{name}", help_text, labels, registry=registry)

        def histogram(name: str, help_text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"audio8_{name}", help_text, buckets=buckets, registry=registry)

        self._connections = counter(
            "connections_opened", "Connections that were opened: WebSockets, and HTTP requests for speech"
        )
        self._opened = counter("contexts_opened", "Contexts that were opened")
        self._ended = counter("contexts_ended", "Contexts that have ended, by how", "how")
        self._errors = counter("errors", "Errors told to clients, over HTTP and WebSocket, by code", "code")
        self._audio_s = counter("audio_sent_seconds", "Audio handed to sockets")
        self._bytes = counter("sent_bytes", "Payload of WebSocket messages and of HTTP answers with speech")
        self._dry = counter("listener_underruns", "Times that a listener who plays from the first chunk on ran dry")
        self._dry_s = counter("listener_underrun_seconds", "Time that such listeners had nothing to play")
        self._queue_s = histogram("queue_wait_seconds", "First segments: from submission to prefill", WAIT_S)
        self._first_s = histogram(
            "first_packet_seconds", "Contexts: from the first segment's text to its first audio", FIRST_PACKET_S
        )
        self._factor = histogram(
            "realtime_factor", "Contexts: time to synthesise over the audio's duration", REALTIME_FACTOR
        )
        self._lag_s = histogram("event_loop_lag_seconds", "How late the gateway's event loop turns", LAG_S)

        self._step_s = histogram("ar_step_seconds", "Stage 0: one step", STEP_S)
        self._step_rows = histogram("ar_step_rows", "Stage 0: streams in one step (batch fill)", STEP_ROWS)
        self._prefill_s = histogram("ar_prefill_seconds", "Stage 0: start of one stream", CALL_S)
        self._frames = counter("ar_frames", "Stage 0: frames generated")
        self._slack_s = histogram(
            "stream_slack_seconds",
            "Stage 0, once a second: audio that each speaking stream's listener has left",
            SLACK_S,
        )
        self._late = counter("stream_underruns", "Stage 0: times that a stream's slack fell below 0")
        self._late_s = counter("stream_underrun_seconds", "Stage 0: time that streams' slack was below 0")
        self._decode_s = histogram("codec_decode_seconds", "Stage 1: one call of the decoder", CALL_S)
        self._decoded = counter("codec_frames", "Stage 1: frames decoded")

        Info("audio8_build", "What runs", registry=registry).info(
            {"version": _version(), "python": platform.python_version()}
        )
        ProcessCollector(registry=registry)
        for how in ENDINGS:
            self._ended.labels(how)
        for code in ErrorCode:
            self._errors.labels(code)

    def look_at(self, engine: Engine, admission: Admission, speakers: Callable[[], Iterable[Speaker]]) -> None:
        """Count what the stages report, and tell how all of these stand whenever someone asks."""
        engine.on_report = self.stage_report
        self._registry.register(_Standing(engine, admission, speakers))

    def exposition(self) -> bytes:
        """All series in Prometheus' text format."""
        return generate_latest(self._registry)

    # Events ---------------------------------------------------------------------------------------------------------

    def connection_opened(self) -> None:
        """A WebSocket is open, or a request for speech is served."""
        self._connections.inc()

    def context_opened(self) -> None:
        """A context has begun."""
        self._opened.inc()

    def context_ended(self, how: str, tally: Tally) -> None:
        """`how` is one of ENDINGS; what is known of its times is counted, whatever the end."""
        self._ended.labels(how).inc()
        if tally.queue_s is not None:
            self._queue_s.observe(tally.queue_s)
        if tally.first_packet_s is not None:
            self._first_s.observe(tally.first_packet_s)
        if tally.realtime_factor is not None:
            self._factor.observe(tally.realtime_factor)

    def error(self, code: ErrorCode) -> None:
        """A client was told this, or should have been."""
        self._errors.labels(code).inc()

    def sent(self, size: int) -> None:
        """A client has taken `size` bytes."""
        self._bytes.inc(size)

    def audio_sent(self, seconds: float, dry_s: float) -> None:
        """Audio was handed over, to a listener who had nothing to play for `dry_s` seconds."""
        self._audio_s.inc(seconds)
        if dry_s > UNDERRUN_S:
            self._dry.inc()
            self._dry_s.inc(dry_s)

    def stage_report(self, report: StageReport) -> None:
        """What a stage has done since its last report."""
        if isinstance(report, ARReport):
            self._ar_report(report)
            return
        self._decoded.inc(report.frames)
        for seconds in report.decodes:
            self._decode_s.observe(seconds)

    def _ar_report(self, report: ARReport) -> None:
        for seconds, rows in report.steps:
            self._step_s.observe(seconds)
            self._step_rows.observe(rows)
        for seconds in report.prefills:
            self._prefill_s.observe(seconds)
        for seconds in report.slacks:
            self._slack_s.observe(seconds)
        self._frames.inc(report.frames)
        self._late.inc(report.underruns)
        self._late_s.inc(report.underrun_s)

    async def watch_loop(self, _: object) -> AsyncIterator[None]:
        """For `Application.cleanup_ctx`: measure the loop's lag while the application runs."""
        watching = asyncio.create_task(self._measure_lag(), name="event loop lag")
        yield
        watching.cancel()

    async def _measure_lag(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            wanted = clock() + _LAG_EVERY_S
            await asyncio.sleep(_LAG_EVERY_S)
            self._lag_s.observe(max(0.0, clock() - wanted))


class _Standing(Collector):
    """How things stand in the moment of asking; of the stages: as they reported last."""

    def __init__(self, engine: Engine, admission: Admission, speakers: Callable[[], Iterable[Speaker]]) -> None:
        self._engine, self._admission, self._speakers = engine, admission, speakers

    def describe(self) -> Iterator[Metric]:
        """Nothing: asked at registration, when nobody may look yet."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """For the registry."""
        speakers = list(self._speakers())
        contexts = Tallies(state for speaker in speakers for state in speaker.context_states())
        yield _gauge(
            "connections",
            "Connections that are open: WebSockets, and HTTP requests for speech",
            self._admission.connections,
        )
        yield _states("contexts", "Open contexts by state", CONTEXT_STATES, contexts)
        yield _gauge(
            "unsent_audio_seconds", "Audio that waits to be sent", sum(each.unsent_audio_s for each in speakers)
        )
        yield _gauge("engine_ready", "1 if any replica can speak", int(self._engine.ready))
        replicas = Tallies("ready" if state.ready else "down" for state in self._engine.states)
        yield _states("replicas", "Replicas of the model by state", REPLICA_STATES, replicas)
        restarts = CounterMetricFamily("audio8_engine_restarts", "Times that stages were started anew")
        restarts.add_metric((), self._engine.restarts)
        yield restarts
        yield from self._stages()

    def _stages(self) -> Iterator[Metric]:
        reports = self._engine.latest_reports
        ar = [report for report in reports if isinstance(report, ARReport)]
        codec = [report for report in reports if not isinstance(report, ARReport)]
        streams = {state: sum(getattr(report, state) for report in ar) for state in STREAM_STATES}
        yield _states("streams", "Stage 0: streams by state", STREAM_STATES, streams)
        yield _gauge("listeners", "Stage 0: listeners that were taken on", sum(report.listeners for report in ar))
        yield _gauge(
            "listeners_capacity",
            "Stage 0: listeners whose rates fit, as measured",
            sum(report.capacity for report in ar),
        )
        yield _gauge("kv_slots", "Stage 0: KV slots", sum(report.slots for report in ar))
        yield _gauge("kv_slots_used", "Stage 0: KV slots in use", sum(report.slots_used for report in ar))
        yield _gauge(
            "codec_backlog_frames", "Stage 1: frames that wait", sum(report.backlog_frames for report in codec)
        )
        least = [report.least_slack for report in ar if report.least_slack is not None]
        if least:
            yield _gauge("stream_slack_least_seconds", "Stage 0: least slack within the last second", min(least))


def _gauge(name: str, help_text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"audio8_{name}", help_text, value)


def _states(name: str, help_text: str, states: Iterable[str], counts: dict[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"audio8_{name}", help_text, labels=["state"])
    for state in states:
        family.add_metric([state], counts.get(state, 0))
    return family


def _version() -> str:
    """Of the installed package; a source tree that was never installed says so."""
    try:
        return version("audio8-gateway")
    except PackageNotFoundError:
        return "not installed"
