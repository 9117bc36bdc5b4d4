"""The whole recipe on one machine: workers speak, language model and decoder (then the encoder) learn side by side.

Run it again on the same folder to go on: trainings resume from their states and workers go on to other passes.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

from inference.training.widths import write_config

CLOSING_S = 25.0
"""Seconds at the end of a run in which the checkpoint is written."""
PASSES_A_RUN = 50
"""More passes over the texts than the workers make in one run."""


class Plan:
    """The processes of one run; each writes its log to a file of its own."""

    def __init__(self, folder: Path, codes: Path, run: int, seconds: float):
        self.folder, self.codes, self.run, self.end = folder, codes, run, time.monotonic() + seconds
        self.checkpoint, self.shards, self.logs = folder / "checkpoint", folder / "shards", folder / "logs"
        for path in (self.shards, self.logs):
            path.mkdir(parents=True, exist_ok=True)
        self._running: dict[str, subprocess.Popen] = {}

    @property
    def left_s(self) -> float:
        """Seconds to the end of the run."""
        return self.end - time.monotonic()

    def start(self, name: str, module: str, *arguments: object) -> None:
        """Start `python -m inference.training.<module>`."""
        command = [sys.executable, "-u", "-m", f"inference.training.{module}", *map(str, arguments)]
        with open(self.logs / f"{name}.{self.run}.log", "w") as log:
            self._running[name] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def start_workers(self, count: int, seconds: float, audio_hours: float) -> None:
        """The teacher's workers, on passes that no other run has used."""
        for worker in range(count):
            self.start(
                f"worker{worker:02d}", "teacher", self.shards, "--codes", self.codes, "--checkpoint", self.checkpoint,
                "--worker", worker, "--workers", count, "--first-pass", PASSES_A_RUN * self.run, "--seconds", seconds,
                "--audio-seconds", audio_hours * 3600 / count,
            )  # fmt: skip

    def start_language(self, seconds: float, planned_s: float, more: list[str]) -> None:
        """The language model's training."""
        self.start(
            "language", "language", self.checkpoint, self.shards, self.folder / "language.pt",
            "--seconds", seconds, "--planned-seconds", planned_s, *more,
        )  # fmt: skip

    def start_vocoder(
        self, seconds: float, planned_s: float, alone_s: float, audio_hours: float, more: tuple[object, ...]
    ) -> None:
        """The decoder's training."""
        self.start(
            "vocoder", "vocoder", self.checkpoint, self.codes, self.shards, self.folder / "vocoder.pt",
            "--seconds", seconds, "--planned-seconds", planned_s, "--alone-seconds", alone_s, "--hours", audio_hours,
            *more,
        )  # fmt: skip

    def start_encoder(self, seconds: float) -> None:
        """The encoder's training."""
        self.start(
            "encoder", "encoder", self.checkpoint, self.codes, self.shards, self.folder / "encoder.pt",
            "--seconds", seconds,
        )  # fmt: skip

    def finish(self) -> bool:
        """Wait for all; say which failed."""
        good = True
        for name, process in self._running.items():
            if process.wait() != 0:
                good = False
                print(f"{name} failed:\n" + (self.logs / f"{name}.{self.run}.log").read_text()[-3000:], flush=True)
        self._running.clear()
        return good


def main() -> None:
    """Run the recipe for some seconds and write the checkpoint."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path, help="where data, states and the checkpoint go")
    parser.add_argument("codes", type=Path)
    parser.add_argument("--run", type=int, default=0, help="number of this run on the folder")
    parser.add_argument("--seconds", type=float, default=560.0, help="seconds of this run, the checkpoint included")
    parser.add_argument("--language-seconds", type=float, default=None, help="of this run; all of it by default")
    parser.add_argument("--planned-language", type=float, default=760.0, help="seconds of it over all runs")
    parser.add_argument("--planned-vocoder", type=float, default=1300.0, help="seconds of it over all runs")
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--audio-hours", type=float, default=6.0)
    parser.add_argument("--alone-seconds", type=float, default=60.0, help="of the vocoder before its critics join")
    parser.add_argument("--encoder-seconds", type=float, default=0.0, help="of the encoder, after the language model")
    parser.add_argument(
        "--language", nargs=argparse.REMAINDER, default=[], help="last: arguments of language.py follow"
    )
    parser.add_argument("--tiny", action="store_true", help="small widths and batches: the whole plan on a CPU")
    arguments = parser.parse_args()
    plan = Plan(arguments.folder, arguments.codes, arguments.run, arguments.seconds)
    write_config(plan.checkpoint, arguments.tiny)
    training_s = plan.left_s - CLOSING_S
    language_s = training_s if arguments.language_seconds is None else arguments.language_seconds
    if language_s:
        plan.start_workers(arguments.workers, language_s - 5, 0.0 if arguments.run else arguments.audio_hours)
        plan.start_language(language_s, arguments.planned_language, arguments.language)
    plan.start_vocoder(
        training_s, arguments.planned_vocoder, arguments.alone_seconds, arguments.audio_hours,
        ("--crops", 2) if arguments.tiny else (),
    )  # fmt: skip
    if arguments.encoder_seconds:
        time.sleep(min(language_s, training_s - arguments.encoder_seconds))
        plan.start_encoder(arguments.encoder_seconds)
    good = plan.finish()
    plan.start("assemble", "assemble", plan.checkpoint, plan.codes, arguments.folder)
    good = plan.finish() and good
    shutil.make_archive(str(arguments.folder / "logs"), "gztar", plan.logs)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
