"""What the policies together promise, in simulated time: fast first packets, and nobody who speaks runs dry.

`tests/bench/simulate_scheduler.py` prints the same for more listeners and longer.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from bench.simulate_scheduler import MACHINES, Figures, simulate

PEER, GPU, CPU = MACHINES
BURST_S = 0.2  # all come at once
SECONDS = {PEER.name: 60.0, GPU.name: 12.0, CPU.name: 60.0}


@cache
def figures(machine, listeners: int, ours: bool = True, within_s: float = 6.0, seed: int = 0) -> Figures:
    return simulate(machine, listeners, ours, SECONDS[machine.name], seed, within_s)


@pytest.mark.parametrize(("machine", "listeners"), [(PEER, 4), (PEER, 8), (GPU, 32), (GPU, 80), (CPU, 4), (CPU, 6)])
def test_where_the_sum_of_rates_fits_first_packets_are_fast_and_nobody_runs_dry(machine, listeners):
    one, many = figures(machine, 1), figures(machine, listeners)
    assert listeners <= many.capacity
    assert many.dry == 0
    assert many.mean <= 1.5 * one.mean and many.p99 <= 2.5 * one.p99


@pytest.mark.parametrize(("machine", "listeners"), [(PEER, 12), (PEER, 24), (GPU, 128), (CPU, 8), (CPU, 16)])
def test_above_that_the_rest_waits_and_who_speaks_does_not_run_dry(machine, listeners):
    many = figures(machine, listeners)
    assert listeners > many.capacity
    assert many.dry == 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("machine", "listeners"), [(PEER, 8), (PEER, 16), (CPU, 6), (CPU, 16)])
def test_a_burst_makes_nobody_dry(machine, listeners, seed):
    assert figures(machine, listeners, within_s=BURST_S, seed=seed).dry == 0


@pytest.mark.parametrize("listeners", [4, 8])
def test_an_unquiet_machine_takes_on_fewer(listeners):
    """Each stage loses 30 % while the other one works, and times vary: measured, not known beforehand."""
    rough = replace(CPU, jitter=0.3, interference=0.3)
    simulated = simulate(rough, listeners, True, 60.0)
    assert simulated.dry == 0 and simulated.capacity < figures(CPU, listeners).capacity


def test_first_come_first_served_does_not_hold_it():
    """The same traces at the published peer's costs: the last ones wait for a place, and everyone runs dry once."""
    ours, rival = figures(PEER, 8), figures(PEER, 8, ours=False)
    assert rival.p99 > 8 * figures(PEER, 1).p99 > 3 * ours.p99
    assert rival.dry == rival.utterances
