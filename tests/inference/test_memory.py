"""Shares of memory and the KV slots that fit."""

from __future__ import annotations

import pytest
from parity import DATA

from inference.deploy import load_deploy_config
from inference.device import stage_device
from inference.memory import OutOfBudget, check_weights, host_memory, kv_slots

GIB = 2**30


def test_slots_are_what_fits_beside_the_weights():
    assert kv_slots(total=10 * GIB, utilization=0.5, weights=1 * GIB, slot=1 * GIB, wanted=16) == 4
    assert kv_slots(total=10 * GIB, utilization=0.5, weights=1 * GIB, slot=1 * GIB, wanted=2) == 2


def test_too_small_a_share_says_how_much_is_needed():
    with pytest.raises(
        OutOfBudget, match=r"0.1 of 10.0 GiB .* \(1.00 GiB\) and one KV slot .*at least 0.200 is needed"
    ):
        kv_slots(total=10 * GIB, utilization=0.1, weights=1 * GIB, slot=1 * GIB, wanted=1)
    with pytest.raises(OutOfBudget, match=r"stages\[1\].*at least 0.200 is needed"):
        check_weights(total=10 * GIB, utilization=0.1, weights=2 * GIB)
    check_weights(total=10 * GIB, utilization=0.2, weights=2 * GIB)


def test_the_machine_has_memory():
    assert 2**28 < host_memory() < 2**50


def test_an_accelerator_that_is_not_there_is_refused():
    stage = load_deploy_config(DATA / "seed_deploy.yaml").ar
    assert stage_device("cpu", stage, 0) == "cpu"
    if stage_device("auto", stage, 0) == "cpu":
        with pytest.raises(ValueError, match="there is no CUDA device 0, 0 are visible"):
            stage_device("cuda", stage, 0)
