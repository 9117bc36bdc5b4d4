"""Event simulation of both stages with the engine's own policy objects: who hears when, and does anyone run dry?

    python tests/bench/simulate_scheduler.py [--seconds 120] [--plot tests/bench/buffers.png]

`Scheduler`, `Costs`, `Chunker` and `DecodeQueue` are the ones that the stages use, called in the stages' order; only
the model and the clock are simulated.  Listeners play in real time and ask again when they have heard the end.  The
rival serves first come, first served: an utterance is one stream, which keeps its place in the step to its end, chunks
are of 4, then 25 frames, and are decoded whole in order of arrival.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.simulation import START_S, Machine, Simulation

UNDERRUN_S = 0.005
LISTENERS = (1, 4, 6, 8, 12, 16, 32, 64, 96)
MACHINES = [
    Machine(
        "published peer",
        step=lambda rows: 0.0139,
        prefill=lambda columns: 0.02,
        decode=lambda frames: 0.004 + 0.017 * min(1.0, (frames + 25) / 50),  # windowed: 25 frames again
    ),
    Machine(
        "H200, aim",
        step=lambda rows: 0.0015,
        prefill=lambda columns: 0.004,
        decode=lambda frames: 0.0015 + 0.000112 * frames,
    ),
    Machine(
        "two CPU cores",
        step=lambda rows: 0.0161 + 0.0007 * rows,
        prefill=lambda columns: 0.002 + 0.00018 * columns,
        decode=lambda frames: 0.006 + 0.00257 * frames,
        interference=0.1,
    ),
]


@dataclass(frozen=True)
class Figures:
    """Of one run: first packets (from being asked for) in seconds, utterances that ran dry, listeners that fit."""

    utterances: int
    mean: float
    p99: float
    dry: int
    dry_longest: float
    capacity: float


def simulate(
    machine: Machine, listeners: int, ours: bool, seconds: float, seed: int = 0, within_s: float = START_S
) -> Figures:
    """Run it."""
    simulation = Simulation(machine, listeners, ours, seed, within_s)
    heard = [utterance for utterance in simulation.run(seconds) if utterance.first is not None]
    first = sorted(utterance.first - utterance.asked for utterance in heard)
    return Figures(
        utterances=len(heard),
        mean=statistics.mean(first),
        p99=first[int(0.99 * len(first))],
        dry=sum(utterance.dry > UNDERRUN_S for utterance in heard),
        dry_longest=max(utterance.dry for utterance in heard),
        capacity=statistics.mean(simulation.capacities),
    )


def print_table(seconds: float) -> None:
    """Both policies on the same traces, as markdown."""
    print("| machine | listeners | of what fits | first packet, mean / p99 | ran dry | FCFS: first packet | ran dry |")
    print("|---|---|---|---|---|---|---|")
    for machine in MACHINES:
        one = simulate(machine, 1, True, seconds)
        for listeners in LISTENERS:
            ours, rival = (simulate(machine, listeners, policy, seconds) for policy in (True, False))
            print(
                f"| {machine.name} | {listeners} | {listeners / ours.capacity:.2f} "
                f"| {_ms(ours)} ({ours.mean / one.mean:.1f} ×, {ours.p99 / one.p99:.1f} ×) | {_dry(ours)} "
                f"| {_ms(rival)} | {_dry(rival)} |",
                flush=True,
            )


def _ms(figures: Figures) -> str:
    return f"{1e3 * figures.mean:.0f} / {1e3 * figures.p99:.0f} ms"


def _dry(figures: Figures) -> str:
    share = f"{figures.dry} of {figures.utterances}"
    return f"{share}, {figures.dry_longest:.2f} s" if figures.dry else share


def plot(file: Path, machine: Machine, listeners: int, seconds: float) -> None:
    """What each listener still has to hear, over time, with both policies."""
    from matplotlib import pyplot

    times = np.arange(0.0, seconds, 0.05)
    figure, axes = pyplot.subplots(2, 1, sharex=True, sharey=True, figsize=(9, 4.5), layout="constrained")
    titles = ("first come, first served; 4, then 25 frames", "least slack first; chunks as they are needed")
    for axis, ours, title in zip(axes, (False, True), titles, strict=True):
        for utterance in Simulation(machine, listeners, ours).run(seconds):
            levels = np.array([utterance.buffer(time) for time in times])
            spoken = [utterance.first is not None and utterance.first <= time <= utterance.end for time in times]
            axis.plot(times, np.where(spoken, levels, np.nan), "k", linewidth=0.5)
            dry = np.array(spoken) & (levels == 0.0)
            axis.plot(times[dry], levels[dry], "rx", markersize=6)
        axis.set(title=f"{machine.name}, {listeners} listeners: {title}", ylabel="audio left (s)", ylim=(-0.2, 3))
    axes[-1].set_xlabel("time (s); a cross: dry")
    figure.savefig(file, dpi=64)


def main() -> None:
    """Print the table; draw the plot if a file is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0, help="of simulated time")
    parser.add_argument("--plot", type=Path, help="a PNG file; needs matplotlib")
    options = parser.parse_args()
    if options.plot:
        plot(options.plot, MACHINES[0], 8, 24.0)
    print_table(options.seconds)


if __name__ == "__main__":
    main()
