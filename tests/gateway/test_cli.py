"""The command line turns arguments into options."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.assets import DEPLOY_CONFIG, WEB
from gateway.cli import build_parser, main
from gateway.options import SayOptions, ServeOptions


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
    monkeypatch.setattr("gateway.say.say", lambda options: given.append(options) or 0)
    assert main(["say"]) == 0
    assert main(["say", "Hi", "-o", "o.wav", "--url", "ws://h", "--voice", "bo", "--rate", "8000"]) == 0
    assert given == [
        SayOptions("ws://127.0.0.1:8080"),
        SayOptions("ws://h", "Hi", Path("o.wav"), "bo", 8000),
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


@pytest.mark.parametrize(
    "arguments",
    [[], ["sing"], ["serve", "--port", "65536"], ["serve", "--device", "tpu"], ["say", "a", "b"]]
    + [["serve", "--allowed-origin", bad] for bad in ("null", "*", "app.example", "https://app.example/")]
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
