"""The whole gateway with its stages, clients included, on this machine: first packet, underruns, real-time factor.

    python tests/bench/bench_gateway.py [--clients 1 4] [--utterances 50] [--deploy-config FILE] [--pace 20]

Starts a gateway of its own with the embedded voice (or `--model`); texts are seeded.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from listeners import UNDERRUN_S, Utterance, listen, texts  # noqa: E402  the tests' helpers are no package


@contextlib.contextmanager
def gateway(arguments: list[str]) -> Iterator[str]:
    """The URL of a gateway that is ready."""
    command = [sys.executable, "-m", "gateway.cli", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            if not line.startswith("ready http://"):
                raise RuntimeError(f"the gateway did not start: {line!r}")
            yield line.split()[1].replace("http://", "ws://") + "/v1/stream"
        finally:
            process.terminate()


async def run(url: str, clients: int, waiting: list[str], pace: float | None, config: dict) -> list[Utterance]:
    """`clients` sockets at once, each with one of the waiting texts after the other."""
    heard: list[Utterance] = []

    async def one() -> None:
        while waiting:
            heard.append(await listen(url, waiting.pop(), pace, **config))

    await asyncio.gather(*(one() for _ in range(clients)))
    return heard


def report(clients: int, heard: list[Utterance]) -> dict:
    """The figures of one run."""
    first = sorted(utterance.first_packet_s for utterance in heard)
    figures = {
        "clients": clients,
        "utterances": len(heard),
        "audio_s": round(sum(utterance.audio_s for utterance in heard), 1),
        "first_packet_median_ms": round(1e3 * statistics.median(first)),
        "first_packet_p95_ms": round(1e3 * first[int(0.95 * (len(first) - 1) + 0.5)]),
        "rtf_median": statistics.median(utterance.end["metrics"]["rtf"] for utterance in heard),
        "silence_s_mean": round(statistics.mean(utterance.silence_s() for utterance in heard), 2),
    }
    for released in ("announced", "typed"):
        dry = [utterance.dry_s(released) for utterance in heard]
        figures[f"underruns_{released}"] = sum(seconds > UNDERRUN_S for seconds in dry)
        figures[f"dry_{released}_max_s"] = round(max(dry), 3)
    return figures


def main() -> None:
    """Print one line of JSON a number of clients."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--utterances", type=int, default=20)
    parser.add_argument("--words", type=int, default=60, help="of an utterance")
    parser.add_argument("--pace", type=float, default=20.0, help="characters a second; 0: whole texts at once")
    parser.add_argument("--deploy-config")
    parser.add_argument("--model")
    parser.add_argument("--config", type=json.loads, default={}, help="a session.config as JSON")
    options = parser.parse_args()
    arguments = ["--deploy-config", options.deploy_config] if options.deploy_config else []
    arguments += ["--model", options.model] if options.model else []
    with gateway([*arguments, "--log-level", "warning"]) as url:
        for clients in options.clients:
            waiting = texts(options.utterances, options.words)
            heard = asyncio.run(run(url, clients, waiting, options.pace or None, options.config))
            print(json.dumps(report(clients, heard)), flush=True)


if __name__ == "__main__":
    main()
