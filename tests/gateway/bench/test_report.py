"""The figures of a measurement, and the texts that it speaks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.bench.command import BenchError, make_texts
from gateway.bench.listener import Utterance
from gateway.bench.player import Player
from gateway.bench.prompts import built_in, texts
from gateway.bench.report import summarise, table

ABOUT = {"max_concurrency": 2, "request_rate": None}


def utterance(first_packet_s: float, stall_s: float = 0.0, code: str | None = None) -> Utterance:
    """Two seconds of audio in two chunks, the second `stall_s` after the first has been heard."""
    player = Player("Hello.", 1000)
    player.typed(10.0, 0)
    player.done(10.0)
    player.segments = [("Hello.", 0)]
    player.heard(10 + first_packet_s, 0, 1000)
    player.heard(11 + first_packet_s + stall_s, 1000, 1000)
    return Utterance(player, ended_at=12.0, code=code, server_rtf=0.25)


def test_figures_have_the_names_and_values_of_the_reference_tool():
    summary = summarise([utterance(0.1), utterance(0.3, stall_s=0.2)], 4.0, ABOUT)
    expected = {
        "completed": 2, "failed": 0, "duration": 4.0,
        "request_throughput": 0.5, "total_audio_duration_s": 4.0, "audio_throughput": 1.0,
        "mean_audio_ttfp_ms": 200.0, "median_audio_ttfp_ms": 200.0,
        "p99_audio_ttfp_ms": 298.0, "max_audio_ttfp_ms": 300.0,
        "mean_e2el_ms": 2000.0, "mean_audio_rtf": 0.65, "mean_server_rtf": 0.25, "mean_audio_duration_s": 2.0,
        "mean_audio_underrun_s": 0.1, "max_audio_underrun_s": 0.2, "p99_audio_underrun_s": 0.198,
        "max_audio_underrun_announced_s": 0.2, "audio_underruns": 1, "audio_continuity_ok_rate": 0.5,
    }  # fmt: skip
    assert {key: summary[key] for key in expected} == pytest.approx(expected)
    assert summary["failures_by_code"] == {} and json.dumps(summary)


def test_failures_are_counted_by_code_and_are_in_no_other_figure():
    failed = [Utterance(Player("x", 1), 11.0, "overloaded"), Utterance(Player("x", 1), 11.0, "overloaded")]
    summary = summarise([utterance(0.1), utterance(0.9, code="max_length"), *failed], 4.0, ABOUT)
    assert (summary["completed"], summary["failed"]) == (1, 3)
    assert summary["failures_by_code"] == {"max_length": 1, "overloaded": 2}
    assert summary["max_audio_ttfp_ms"] == pytest.approx(100)
    assert "  overloaded:                            2" in table(summary)


def test_a_table_of_nothing():
    summary = summarise([], 0.0, ABOUT)
    assert summary["mean_audio_ttfp_ms"] is None and summary["audio_continuity_ok_rate"] is None
    assert "Mean AUDIO_TTFP (ms):                    -" in table(summary)


def test_the_table_has_the_rows_of_the_reference_tool():
    shown = table(summarise([utterance(0.1)], 4.0, ABOUT | {"request_rate": 2.5}))
    for row in (
        "============ Serving Benchmark Result ============",
        "Successful requests:                     1",
        "Request rate configured (RPS):           2.500",
        "================== Audio Result ==================",
        "Audio throughput(audio duration/s):      0.500",
        "---------------Time to First Packet---------------",
        "Median AUDIO_TTFP (ms):                  100.000",
        "P99 AUDIO_RTF:                           0.550",
        "Continuity rate (<= 100 ms):             1.000",
    ):
        assert row in shown.split("\n")


def test_texts_are_seeded_and_long_enough():
    sentences = built_in()
    assert len(set(sentences)) == len(sentences) >= 40
    made = texts(sentences, 5, 30, seed=1)
    assert made == texts(sentences, 5, 30, seed=1) != texts(sentences, 5, 30, seed=2)
    assert all(30 <= len(text.split()) < 50 for text in made) and len(made) == 5


def test_texts_of_a_file(tmp_path: Path):
    path = tmp_path / "texts"
    path.write_text("One.\n\n  Two.  \n")
    assert make_texts(3, 30, path, seed=0) == ["One.", "Two.", "One."]
    path.write_text("\n")
    with pytest.raises(BenchError, match="no line"):
        make_texts(3, 30, path, seed=0)
    with pytest.raises(BenchError, match="nowhere"):
        make_texts(3, 30, tmp_path / "nowhere", seed=0)
