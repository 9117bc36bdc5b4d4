"""Gateways for the real client packages, and a way to run those; `client_runs` says how to add one."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from certificates import make_certificate
from client_runs import run_client
from recogniser import recogniser, transcript
from running_gateway import gateway, run_gateway  # noqa: F401

from gateway.assets import DEPLOY_CONFIG


@pytest.fixture
def talk(tmp_path) -> Callable:
    """`await talk(client, script, case, env=None, **arguments)`: see `client_runs.run_client`."""
    return partial(run_client, tmp_path)


@pytest.fixture(scope="session")
def voice_url() -> Iterator[str]:
    """`http://…` of the whole gateway in a process of its own, with the embedded voice."""
    with serving() as url:
        yield url


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """The URL of a gateway with the embedded voice and further options."""
    command = (sys.executable, "-m", "gateway.cli", "serve", "--port", "0", "--device", "cpu", "--log-level", "warning")
    command = (*command, "--deploy-config", str(DEPLOY_CONFIG), *options)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        ready = re.fullmatch(r"ready (https?://\S+)\n", process.stdout.readline())
        assert ready, "the gateway did not start"
        yield ready[1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="session")
def secure_voice(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """As `voice_url`, over TLS: `https://…`, and the certificate to trust."""
    certificate, key = make_certificate(tmp_path_factory.mktemp("tls"))
    with serving("--tls-cert", str(certificate), "--tls-key", str(key)) as url:
        yield url, certificate


@pytest.fixture(scope="session")
def understood(tmp_path_factory) -> Callable[[np.ndarray, int], str]:
    """`understood(samples, rate)`: what a recogniser makes of int16 samples, lower case, words only."""
    model = recogniser(tmp_path_factory.mktemp("whisper"))

    def words(samples: np.ndarray, rate: int) -> str:
        heard = transcript(model, samples.astype(np.float32) / 32768, rate)
        return " ".join(re.findall(r"[a-z']+", heard.lower()))

    return words
