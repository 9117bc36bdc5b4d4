"""The command line: `audio8-gateway serve`, `say` and `bench`."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gateway.address import DEFAULT_URL
from gateway.assets import DEPLOY_CONFIG, default_voices_dir
from gateway.http.origin import host_name, is_origin
from gateway.keys import CLIENT_VARIABLE, SERVER_VARIABLE
from gateway.limit_option import limits_with
from gateway.options import SHUTDOWN_GRACE_S, BenchOptions, SayOptions, ServeOptions

_LOG_LEVELS = ("debug", "info", "warning", "error")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command given by `arguments` (default: those of the process); returns the exit status."""
    parsed = build_parser().parse_args(arguments)
    return parsed.run(parsed)


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; the parsed arguments carry the command as `run`."""
    parser = argparse.ArgumentParser(prog="audio8-gateway", description="Streaming text-to-speech gateway.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_serve(commands)
    _add_say(commands)
    _add_bench(commands)
    return parser


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    serve = commands.add_parser("serve", help="run the gateway")
    add = serve.add_argument
    add("--model", metavar="DIR|ID", help="checkpoint directory or hub id (default: the embedded voice)")
    add("--deploy-config", metavar="FILE", type=Path, default=DEPLOY_CONFIG, help="stages' YAML (default: %(default)s)")
    add("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    add("--port", type=_port, default=8080, help="port to listen at, 0 for any free one (default: %(default)s)")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where the model runs (default: %(default)s)")
    add("--log-level", choices=_LOG_LEVELS, default="info", help="least important log lines (default: %(default)s)")
    keys_help = f"clients need one of its keys, one a line, or one of those in ${SERVER_VARIABLE}"
    add("--api-keys-file", metavar="FILE", type=Path, help=keys_help)
    add("--allow-anonymous", action="store_true", help="other machines may connect although there are no keys")
    origin_help = "pages of this origin may connect; repeatable (default: the gateway's own and loopback's)"
    add("--allowed-origin", metavar="URL", type=_origin, action="append", default=[], help=origin_help)
    host_help = "clients may call the gateway by this name; repeatable (default: any; on loopback its names)"
    add("--allowed-host", metavar="NAME", type=_host, action="append", default=[], help=host_help)
    add("--tls-cert", metavar="FILE", type=Path, help="certificate chain, PEM: https and wss instead of http and ws")
    add("--tls-key", metavar="FILE", type=Path, help="the certificate's private key, PEM, without a password")
    voices_help = "where uploaded voices are kept (default: %(default)s)"
    add("--voices-dir", metavar="DIR", type=Path, default=default_voices_dir(), help=voices_help)
    alias_help = "another name of a voice, such as alloy=anna; repeatable"
    add("--voice-alias", metavar="NAME=VOICE", type=_alias, action="append", default=[], help=alias_help)
    limit_help = "another limit than the default, such as idle_s=600; repeatable (names: protocol/SPEC.md)"
    add("--limit", metavar="NAME=VALUE", action="append", default=[], help=limit_help)
    grace_help = "after a signal, contexts may go on so long before they are ended (default: %(default)g)"
    add("--shutdown-grace", metavar="SECONDS", type=_seconds, default=SHUTDOWN_GRACE_S, help=grace_help)
    serve.set_defaults(run=_serve, fail=serve.error)


def _add_say(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    say = commands.add_parser("say", help="speak a text through a running gateway")
    add = say.add_argument
    add("text", nargs="?", help="what to say; without it standard input is spoken while it comes in")
    add("-o", "--output", metavar="FILE", type=Path, help="write a file instead of playing: .wav, .opus or .mp3")
    add("--url", default=DEFAULT_URL, help="the gateway (default: %(default)s)")
    add("--voice", metavar="NAME", help="a voice of the gateway (default: its first)")
    add("--rate", metavar="HZ", type=int, help="sample rate (default: the model's; of .opus: 48000)")
    add("--api-key", metavar="KEY", help=f"a key of the gateway (default: ${CLIENT_VARIABLE}, hidden from `ps`)")
    say.set_defaults(run=_say)


def _add_bench(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    bench = commands.add_parser("bench", help="measure a running gateway under load")
    add, default = bench.add_argument, BenchOptions(DEFAULT_URL)
    add("--url", default=default.url, help="the gateway (default: %(default)s)")
    add("--concurrency", metavar="N", type=_count, default=default.concurrency, help="listeners (default: %(default)s)")
    add("--prompts", metavar="M", type=_count, default=default.prompts, help="texts in all (default: %(default)s)")
    add("--realtime", action="store_true", help="type the texts, and ask again when the end was heard")
    pace_help = "pace of the typing with --realtime (default: %(default)s, of a language model)"
    add("--chars-per-second", metavar="X", type=_positive, default=default.characters_per_s, help=pace_help)
    rate_help = "requests a second, at random times (default: as soon as a listener is free)"
    add("--request-rate", metavar="X", type=_positive, help=rate_help)
    add("--warmups", metavar="N", type=_count_or_none, default=default.warmups, help="texts before, not measured")
    add("--words", metavar="N", type=_count, default=default.words, help="of a text, at least (default: %(default)s)")
    add("--text-file", metavar="FILE", type=Path, help="texts, one a line (default: made of plain English sentences)")
    add("--voice", metavar="NAME", help="a voice of the gateway (default: its first)")
    add("--rate", metavar="HZ", type=int, help="sample rate (default: the model's)")
    add("--seed", metavar="N", type=int, default=default.seed, help="of texts, times and speech (default: %(default)s)")
    add("--output", metavar="FILE.json", type=Path, help="write the figures as JSON")
    add("--plot", metavar="FILE.png", type=Path, help="draw the players' buffers (needs matplotlib)")
    add("--api-key", metavar="KEY", help=f"a key of the gateway (default: ${CLIENT_VARIABLE}, hidden from `ps`)")
    bench.set_defaults(run=_bench)


def _serve(parsed: argparse.Namespace) -> int:
    from gateway.server import serve  # late: `say` needs no server, and starts twice as fast without

    try:
        limits = limits_with(parsed.limit)
    except ValueError as error:
        parsed.fail(f"argument --limit: {error}")
    return serve(
        ServeOptions(
            model=parsed.model,
            deploy_config=parsed.deploy_config,
            host=parsed.host,
            port=parsed.port,
            device=parsed.device,
            log_level=parsed.log_level,
            api_keys_file=parsed.api_keys_file,
            allow_anonymous=parsed.allow_anonymous,
            allowed_origins=tuple(parsed.allowed_origin),
            allowed_hosts=tuple(parsed.allowed_host),
            tls_certificate=parsed.tls_cert,
            tls_key=parsed.tls_key,
            voices_dir=parsed.voices_dir,
            voice_aliases=dict(parsed.voice_alias),
            shutdown_grace_s=parsed.shutdown_grace,
            limits=limits,
        )
    )


def _say(parsed: argparse.Namespace) -> int:
    from gateway.say.command import say

    return say(
        SayOptions(
            url=parsed.url,
            text=parsed.text,
            output=parsed.output,
            voice=parsed.voice,
            sample_rate=parsed.rate,
            api_key=parsed.api_key or os.environ.get(CLIENT_VARIABLE),
        )
    )


def _bench(parsed: argparse.Namespace) -> int:
    from gateway.bench.command import bench

    return bench(
        BenchOptions(
            url=parsed.url,
            concurrency=parsed.concurrency,
            prompts=parsed.prompts,
            realtime=parsed.realtime,
            characters_per_s=parsed.chars_per_second,
            request_rate=parsed.request_rate,
            warmups=parsed.warmups,
            words=parsed.words,
            text_file=parsed.text_file,
            voice=parsed.voice,
            sample_rate=parsed.rate,
            seed=parsed.seed,
            output=parsed.output,
            plot=parsed.plot,
            api_key=parsed.api_key or os.environ.get(CLIENT_VARIABLE),
        )
    )


def _count(value: str) -> int:
    """A number of things, at least one."""
    return _at_least(1, int(value))


def _count_or_none(value: str) -> int:
    """A number of things, or 0."""
    return _at_least(0, int(value))


def _at_least(least: int, number: int) -> int:
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is too small: at least {least}")
    return number


def _positive(value: str) -> float:
    """A finite number above 0."""
    number = float(value)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{value} is not a number above 0")
    return number


def _port(value: str) -> int:
    """A port number, 0 to 65535."""
    port = int(value)  # argparse tells of what is no number
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{port} is not a port: 0 to 65535")
    return port


def _seconds(value: str) -> float:
    """A time, 0 or longer."""
    seconds = float(value)  # argparse tells of what is no number
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{value} is no time: seconds, 0 or more")
    return seconds


def _origin(value: str) -> str:
    """The origin of a web page."""
    if not is_origin(value):
        raise argparse.ArgumentTypeError(f"{value!r} is no origin: it looks like https://host or https://host:port")
    return value


def _alias(value: str) -> tuple[str, str]:
    """(another name, the voice's name)."""
    name, sign, voice = value.partition("=")
    if not (name and sign and voice):
        raise argparse.ArgumentTypeError(f"{value!r} names no voice: it looks like NAME=VOICE")
    return name, voice


def _host(value: str) -> str:
    """A host name or address, in the form in which the policy compares it."""
    name = host_name(value)
    if not name or value.strip("[]").lower() != name:
        raise argparse.ArgumentTypeError(f"{value!r} is no host name: neither scheme nor port nor path belong to it")
    return name


if __name__ == "__main__":
    sys.exit(main())
