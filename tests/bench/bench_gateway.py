"""The whole gateway with its stages, clients included, on this machine: first packet, underruns, real-time factor.

    python tests/bench/bench_gateway.py [--clients 1 4] [--utterances 50] [--deploy-config FILE] [--pace 20]

Starts a gateway of its own with the embedded voice (or `--model`); texts are seeded, of sentences that the voice was
not trained on.  The listeners are those of `audio8-gateway bench`, which measures a gateway that runs already.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from gateway.bench.listener import Utterance  # noqa: E402  this file is a program, not a part of a package
from gateway.bench.load import Load, Pace  # noqa: E402
from gateway.bench.prompts import read_lines, texts  # noqa: E402
from gateway.bench.report import summarise  # noqa: E402
from protocol.client import connect  # noqa: E402

HELDOUT = ROOT / "inference" / "training" / "data" / "heldout.txt"


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


def changed(base: Path, settings: list[str], file: Path) -> Path:
    """Write the deploy file `base` to `file`, with keys set: "stages.0.max_num_seqs=8"."""
    values = yaml.safe_load(base.read_text())
    for setting in settings:
        path, _, value = setting.partition("=")
        *parents, key = path.split(".")
        section = values
        for parent in parents:
            section = section[int(parent) if parent.isdecimal() else parent]
        section[key] = yaml.safe_load(value)
    file.write_text(yaml.safe_dump(values))
    return file


async def run(url: str, waiting: list[str], pace: Pace, config: dict, endless: bool) -> dict[str, object]:
    """The figures of one load."""
    utterances: list[Utterance] = []
    async with Load(lambda: connect(url, **config), pace) as load:
        begin = time.monotonic()
        await load.speak(waiting, 0, utterances.append)
    # Without ends (`ignore_eos`) each segment comes to its longest; elsewhere that is a failure.
    if endless:
        utterances = [replace(each, code=None) if each.code == "max_length" else each for each in utterances]
    about = {"max_concurrency": pace.concurrency, "characters_per_s": pace.characters_per_s}
    return summarise(utterances, max(utterance.ended_at for utterance in utterances) - begin, about)


def main() -> None:
    """Print one line of JSON a number of clients."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--utterances", type=int, default=20)
    parser.add_argument("--each", type=int, default=0, help="utterances a client, at least")
    parser.add_argument("--words", type=int, default=60, help="of an utterance")
    parser.add_argument("--pace", type=float, default=20.0, help="characters a second; 0: whole texts at once")
    parser.add_argument("--deploy-config", default=ROOT / "deploy" / "audio8_tts.yaml", type=Path)
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a key of it: stages.1.x=2"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--log-level", default="warning")
    parser.add_argument("--model")
    parser.add_argument("--config", type=json.loads, default={}, help="a session.config as JSON")
    options = parser.parse_args()
    arguments = ["--device", options.device, "--log-level", options.log_level]
    arguments += ["--model", options.model] if options.model else []
    with tempfile.TemporaryDirectory() as directory:
        deploy = changed(options.deploy_config, options.set, Path(directory) / "deploy.yaml")
        endless = yaml.safe_load(deploy.read_text()).get("ignore_eos", False)
        measure(options, [*arguments, "--deploy-config", str(deploy)], endless)


def measure(options: argparse.Namespace, arguments: list[str], endless: bool) -> None:
    """One gateway, each number of clients after the other."""
    begin = time.monotonic()
    with gateway(arguments) as url:
        print(json.dumps({"ready_s": time.monotonic() - begin}), flush=True)
        for clients in options.clients:
            waiting = texts(read_lines(HELDOUT), max(options.utterances, options.each * clients), options.words)
            figures = asyncio.run(run(url, waiting, Pace(clients, options.pace or None), options.config, endless))
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
