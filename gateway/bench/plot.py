"""A picture of the players' buffers over time."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from gateway.bench.player import UNDERRUN_S, Player

_SIZE_INCHES, _DPI = (11, 6), 120


class PlotError(Exception):
    """There will be no picture; the message says what would help."""


def check_plot() -> None:
    """Raises PlotError if nothing here can draw, to be told before a long measurement and not after it."""
    if importlib.util.find_spec("matplotlib") is None:
        raise PlotError("--plot needs the Python package matplotlib: pip install matplotlib")


def plot_buffers(players: Sequence[Player], begin: float, path: Path) -> None:
    """Write a PNG: seconds of audio that each player holds, over the seconds since `begin`.  Raises PlotError."""
    from matplotlib.figure import Figure  # an optional extra; the figure by itself needs no display

    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    axes = figure.subplots()
    for player in players:
        times, seconds = zip(*player.buffer(), strict=True)
        axes.plot([at - begin for at in times], seconds, linewidth=0.8, alpha=0.6)
        for (since, held), (until, still) in pairwise(player.buffer()):
            if held == still == 0 and until - since > UNDERRUN_S:
                axes.plot([since - begin, until - begin], [0, 0], "r", linewidth=4, clip_on=False)
    axes.set(xlabel="time (s)", ylabel="audio in the player's buffer (s)", title=_title(players))
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    try:
        figure.savefig(path, format="png", dpi=_DPI)
    except OSError as error:
        raise PlotError(f"cannot write {path}: {error.strerror}") from error


def _title(players: Sequence[Player]) -> str:
    return f"Buffers of {len(players)} players; red: nothing to play"
