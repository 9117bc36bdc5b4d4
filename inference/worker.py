"""`python -m inference.worker`: runs one stage, or both in threads of one process, for the gateway that started it."""

from __future__ import annotations

import argparse
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Sequence

from inference.deploy import load_deploy_config

_GRACE_S = 1.0  # a stage that looks at its channel ends by itself, in order


def main() -> int:
    """Exit code 0 when the gateway has closed the channels, 1 if a stage could not start or broke."""
    options = _options()
    logging.basicConfig(level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s")
    channels = [os.dup(fd) for _, fd in options.stage]
    threading.Thread(target=_end_with_gateway, args=(channels,), daemon=True, name="gateway watch").start()

    from inference.stages import Place, run_stages  # not before the watch: loading PyTorch takes seconds

    deploy = load_deploy_config(options.deploy_config)
    place = Place(deploy, options.connector, options.model, options.device, options.replica)
    return int(not run_stages(options.stage, place))


def _end_with_gateway(channels: Sequence[int]) -> None:
    """End this process when the gateway's ends of the channels are closed, however busy with loading or work it is."""
    poll = select.poll()
    for channel in channels:
        poll.register(channel, 0)  # of a hang-up it tells always
    poll.poll()
    time.sleep(_GRACE_S)
    os._exit(0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="inference.worker", description=__doc__)
    parser.add_argument(
        "--stage", action="append", type=_pair, required=True, help="stage_id:channel_fd; may be repeated"
    )
    parser.add_argument("--connector", type=_numbers, required=True, help="the connector's file descriptors, a:b:c")
    parser.add_argument("--replica", type=int, required=True, help="whose place in `devices` the stage takes")
    parser.add_argument("--deploy-config", required=True)
    parser.add_argument("--model", default=None, help="directory or hub id; the embedded voice by default")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--log-level", default="info")
    return parser.parse_args()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(":"))


def _pair(text: str) -> tuple[int, int]:
    stage_id, fd = _numbers(text)
    return stage_id, fd


if __name__ == "__main__":
    sys.exit(main())
