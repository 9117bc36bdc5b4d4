"""The command line turns arguments into options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.assets import DEPLOY_CONFIG, WEB
from gateway.cli import build_parser, main
from gateway.options import BenchOptions, SayOptions, ServeOptions
from protocol.limits import Limits


def test_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[ServeOptions] = []
    monkeypatch.setattr("gateway.server.serve", lambda options: given.append(options) or 7)
    assert main(["serve"]) == 7
    assert (
        main(["serve", "--model", "m", "--deploy-config", "d.yaml", "--host", "::", "--port", "0", "--device", "cpu"])
        == 7
    )
    assert given == [
        ServeOptions(None, DEPLOY_CONFIG, "127.0.0.1", 8080, "auto", "info"),
        ServeOptions("m", Path("d.yaml"), "::", 0, "cpu", "info"),
    ]


def test_say(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[SayOptions] = []
    monkeypatch.setattr("gateway.say.command.say", lambda options: given.append(options) or 0)
    assert main(["say"]) == 0
    assert main(["say", "Hi", "-o", "o.wav", "--url", "ws://h", "--voice", "bo", "--rate", "8000"]) == 0
    assert given == [
        SayOptions("ws://127.0.0.1:8080"),
        SayOptions("ws://h", "Hi", Path("o.wav"), "bo", 8000),
    ]


def test_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[BenchOptions] = []
    monkeypatch.setattr("gateway.bench.command.bench", lambda options: given.append(options) or 0)
    assert main(["bench"]) == 0
    numbers = "--concurrency 2 --prompts 3 --chars-per-second 5.5 --request-rate 0.5 --warmups 0 --words 9 --seed 1"
    files = "--text-file t --output o.json --plot p.png"
    others = "--url ws://h --realtime --voice bo --rate 8000 --api-key k"
    assert main(["bench", *f"{numbers} {files} {others}".split()]) == 0
    assert given == [
        BenchOptions("ws://127.0.0.1:8080"),
        BenchOptions(
            "ws://h", 2, 3, True, 5.5, 0.5, 0, 9, Path("t"), "bo", 8000, 1, Path("o.json"), Path("p.png"), "k"
        ),
    ]


def test_who_may_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[ServeOptions] = []
    monkeypatch.setattr("gateway.server.serve", lambda options: given.append(options) or 0)
    arguments = "--api-keys-file k --allow-anonymous --allowed-origin https://a.example --allowed-origin http://b:81"
    assert main(["serve", *arguments.split(), "--allowed-host", "Speak.example", "--allowed-host", "[fe80::1]"]) == 0
    (options,) = given
    assert (options.api_keys_file, options.allow_anonymous) == (Path("k"), True)
    assert options.allowed_origins == ("https://a.example", "http://b:81")
    assert options.allowed_hosts == ("speak.example", "fe80::1")


def test_limits_and_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[ServeOptions] = []
    monkeypatch.setattr("gateway.server.serve", lambda options: given.append(options) or 0)
    arguments = ["--limit", "idle_s=600.5", "--limit", "contexts=2", "--shutdown-grace", "0"]
    assert main(["serve", *arguments]) == 0
    assert given[0].limits == Limits(idle_s=600.5, contexts=2) and given[0].shutdown_grace_s == 0


def test_aliases_of_voices(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    given: list[ServeOptions] = []
    monkeypatch.setattr("gateway.server.serve", lambda options: given.append(options) or 0)
    assert main(["serve", "--voice-alias", "alloy=anna", "--voice-alias", "aura-2=ben"]) == 0
    assert given[0].voice_aliases == {"alloy": "anna", "aura-2": "ben"}
    for wrong in ("alloy", "=anna", "alloy="):
        with pytest.raises(SystemExit):
            main(["serve", "--voice-alias", wrong])
        assert "names no voice: it looks like NAME=VOICE" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("idle=3", "'idle=3' is no limit.*one of message_bytes, .*remembered_ids"),
        ("contexts", "'contexts' is no limit"),
        ("contexts=0", "contexts must be a whole number from 1 up, at most 9007199254740991; got '0'"),
        ("connections=99999999999999999999", "connections must be a whole number from 1 up, at most 9007199254740991"),
        ("contexts=2.5", "contexts must be a whole number from 1 up"),
        ("contexts=-1", "contexts must be a whole number from 1 up"),
        ("message_bytes=100", "message_bytes must be a whole number from 4096 up"),
        ("message_bytes=9000000", "config_message_bytes must be at least message_bytes; it is 8388608"),
        *((f"idle_s={value}", "idle_s must be seconds, a number above 0") for value in ("0", "-1", "inf", "nan", "")),
    ],
)
def test_limits_that_are_none(setting: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", "--limit", setting])
    assert ended.value.code == 2
    assert re.search(f"argument --limit: .*{why}", " ".join(capsys.readouterr().err.split()))


@pytest.mark.parametrize(
    "arguments",
    [[], ["sing"], ["serve", "--port", "65536"], ["serve", "--device", "tpu"], ["say", "a", "b"]]
    + [["bench", option, "0"] for option in ("--concurrency", "--prompts", "--words", "--request-rate")]
    + [["bench", "--warmups", "-1"], ["bench", "--chars-per-second", "inf"], ["bench", "text"]]
    + [["serve", "--allowed-origin", bad] for bad in ("null", "*", "app.example", "https://app.example/")]
    + [["serve", "--shutdown-grace", bad] for bad in ("-1", "inf", "soon")]
    + [["serve", "--allowed-host", bad] for bad in ("", "speak.example:80", "http://speak.example", "a/b")],
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args(arguments)
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_what_is_shipped_is_there() -> None:
    assert (WEB / "index.html").is_file()
    assert DEPLOY_CONFIG.is_file()


def test_where_voices_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[ServeOptions] = []
    monkeypatch.setattr("gateway.server.serve", lambda options: given.append(options) or 0)
    assert main(["serve", "--voices-dir", "d"]) == 0
    for data in ("/data", "relative", ""):
        monkeypatch.setenv("XDG_DATA_HOME", data)
        monkeypatch.setenv("HOME", "/home/me")
        assert main(["serve"]) == 0
    home = Path("/home/me/.local/share/audio8-gateway/voices")
    assert [options.voices_dir for options in given] == [Path("d"), Path("/data/audio8-gateway/voices"), home, home]
