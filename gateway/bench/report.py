"""What a load test found, as a flat dictionary for JSON and as a table.

Names and rows are those of `vllm bench serve --omni` where it has the same figure (`mean_audio_ttfp_ms`, `audio_rtf`,
`audio_throughput`, `e2el`, …), so that its readers and scripts find what they know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gateway.bench.listener import Utterance
from gateway.bench.player import UNDERRUN_S, Released

CONTINUITY_THRESHOLD_S = 0.1  # as `vllm bench serve`: below it a gap is taken as not heard
_WIDTH, _LABEL = 50, 40

_STATISTICS: dict[str, Any] = {
    "mean": np.mean,
    "median": np.median,
    "std": np.std,
    "p95": lambda values: np.percentile(values, 95),
    "p99": lambda values: np.percentile(values, 99),
    "max": np.max,
}
_SHOWN = ("mean", "median", "p95", "p99", "max")

# Heading in the table, key, unit, and its value for an utterance that was spoken.
_FIGURES = (
    ("End-to-end Latency", "e2el", "ms", lambda u: 1e3 * u.latency_s),
    ("Time to First Packet", "audio_ttfp", "ms", lambda u: 1e3 * u.player.first_packet_s),
    ("Real Time Factor", "audio_rtf", "", lambda u: u.player.real_time_factor),
    ("Real Time Factor (the gateway's own)", "server_rtf", "", lambda u: u.server_rtf),
    ("Audio Duration", "audio_duration", "s", lambda u: u.player.audio_s),
    ("Underrun", "audio_underrun", "s", lambda u: u.player.dry_s()),
    ("Underrun inside segments", "audio_underrun_announced", "s", lambda u: u.player.dry_s(Released.ANNOUNCED)),
)


def summarise(utterances: Sequence[Utterance], duration_s: float, about: Mapping[str, object]) -> dict[str, object]:
    """All figures, behind `about` (how it was measured).  Figures of nothing are None."""
    spoken = [utterance for utterance in utterances if utterance.code is None]
    audio_s = sum(utterance.player.audio_s for utterance in spoken)
    summary: dict[str, object] = {
        **about,
        "duration": duration_s,
        "completed": len(spoken),
        "failed": len(utterances) - len(spoken),
        "failures_by_code": dict(Counter(utterance.code for utterance in utterances if utterance.code)),
        "request_throughput": len(spoken) / duration_s if duration_s else None,
        "total_audio_duration_s": audio_s,
        "audio_throughput": audio_s / duration_s if duration_s else None,
    }
    for _, key, unit, value in _FIGURES:
        values = [found for utterance in spoken if (found := value(utterance)) is not None]
        for name, statistic in _STATISTICS.items():
            summary[_key(name, key, unit)] = float(statistic(values)) if values else None
    dry = [utterance.player.dry_s() for utterance in spoken]
    dry_inside = [utterance.player.dry_s(Released.ANNOUNCED) for utterance in spoken]
    summary["audio_underruns"] = sum(seconds > UNDERRUN_S for seconds in dry)
    summary["audio_underruns_announced"] = sum(seconds > UNDERRUN_S for seconds in dry_inside)
    summary["audio_continuity_threshold_s"] = CONTINUITY_THRESHOLD_S
    summary["audio_continuity_ok_rate"] = (
        sum(seconds <= CONTINUITY_THRESHOLD_S for seconds in dry) / len(dry) if dry else None
    )
    return summary


def table(summary: Mapping[str, Any]) -> str:
    """The summary for a person."""
    lines = [_heading(" Serving Benchmark Result ", "=")]
    lines += [
        _row("Successful requests:", summary["completed"]),
        _row("Failed requests:", summary["failed"]),
        *(_row(f"  {code}:", count) for code, count in summary["failures_by_code"].items()),
        _row("Maximum request concurrency:", summary["max_concurrency"]),
        *([_row("Request rate configured (RPS):", rate)] if (rate := summary["request_rate"]) else []),
        _row("Benchmark duration (s):", summary["duration"]),
        _row("Request throughput (req/s):", summary["request_throughput"]),
    ]
    lines += _section(summary, *_FIGURES[0])
    lines += [
        _heading(" Audio Result ", "="),
        _row("Total audio duration generated(s):", summary["total_audio_duration_s"]),
        _row("Audio throughput(audio duration/s):", summary["audio_throughput"]),
    ]
    for figure in _FIGURES[1:]:
        lines += _section(summary, *figure)
    lines += [
        _row("Utterances with an underrun:", summary["audio_underruns"]),
        _row("  inside segments:", summary["audio_underruns_announced"]),
        _row(f"Continuity rate (<= {1e3 * CONTINUITY_THRESHOLD_S:.0f} ms):", summary["audio_continuity_ok_rate"]),
        "=" * _WIDTH,
    ]
    return "\n".join(lines)


def _section(summary: Mapping[str, Any], heading: str, key: str, unit: str, _: object) -> list[str]:
    suffix = f" ({unit})" if unit else ""
    rows = [_row(f"{name.title()} {key.upper()}{suffix}:", summary[_key(name, key, unit)]) for name in _SHOWN]
    return [_heading(heading, "-"), *rows]


def _key(statistic: str, key: str, unit: str) -> str:
    return "_".join(filter(None, (statistic, key, unit)))


def _heading(text: str, filler: str) -> str:
    return f"{text:{filler}^{_WIDTH}}"


def _row(label: str, value: float | None) -> str:
    shown = "-" if value is None else value if isinstance(value, int) else f"{value:.3f}"
    return f"{label:<{_LABEL}} {shown:<9}".rstrip()
