"""API keys: where they come from, how a client gives one, and that no log line ever has one."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import ClientSession, WSServerHandshakeError
from scripted_engine import ScriptedEngine
from websockets.exceptions import InvalidStatus

from gateway import logs
from gateway.keys import ApiKeys, KeysError, is_key, load_keys
from gateway.settings import Settings
from protocol.limits import Limits

KEY, OTHER = "k3y-of.the_phone~+/==", "another-key"
SETTINGS = Settings(keys=ApiKeys({"phone": KEY, "#2": OTHER}))


def token(key: str) -> dict:
    return {"additional_headers": {"Authorization": f"Token {key}"}}


def own_header(key: str) -> dict:
    return {"additional_headers": {"xi-api-key": key}}


def bearer(key: str) -> dict:
    return {"additional_headers": {"Authorization": f"Bearer {key}"}}


def subprotocols(key: str) -> dict:
    encoded = base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")
    return {"subprotocols": ["audio8.v1", f"audio8.key.{encoded}"]}


@pytest.fixture
async def locked(run_gateway):
    """A gateway that wants a key."""
    async with run_gateway(ScriptedEngine(), SETTINGS) as gateway:
        yield gateway


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture):
    """Everything that the server logs, down to debug, as `serve` sets it up."""
    logs.configure("debug")
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, "websockets.client")  # the test's own side
    return caplog


async def refused(gateway, **options: object):
    with pytest.raises(InvalidStatus) as error:
        await gateway.client(**options)
    return error.value.response


@pytest.mark.parametrize("key", [KEY, OTHER])
@pytest.mark.parametrize("give", [bearer, token, own_header, subprotocols])
async def test_a_client_with_a_key_speaks(locked, log, give, key):
    async with await locked.client(**give(key)) as client:
        assert client.socket.subprotocol in (None, "audio8.v1")
        await client.speak("Open.")
        assert (await client.whole("_0")).audio
    assert "key=phone" in log.text or "key=#2" in log.text
    assert key not in log.text and give(key).get("subprotocols", [key])[-1] not in log.text


@pytest.mark.parametrize("scheme", ["token", "bearer"])
async def test_a_key_behind_a_scheme_among_the_subprotocols(locked, log, scheme):
    async with await locked.client(subprotocols=[scheme, OTHER, "x-deepgram-session-id", "0"]) as client:
        assert client.ready
    assert "key=#2" in log.text and OTHER not in log.text


async def test_a_key_in_the_query(locked, log):
    url = f"http://127.0.0.1:{locked.port}/v1/stream"
    async with ClientSession() as http, http.ws_connect(url, params={"token": KEY}) as socket:
        assert (await socket.receive_json())["type"] == "session.ready"
        with pytest.raises(Exception, match="401"):
            await http.ws_connect(url, params={"token": KEY[1:]})
    assert KEY[:8] not in log.text and "token" not in log.text


@pytest.mark.parametrize(
    "options",
    [
        {},
        bearer("wrong"),
        bearer(""),
        bearer(KEY[:-1]),
        bearer(KEY + "="),
        {"additional_headers": {"Authorization": f"Basic {KEY}"}},
        subprotocols("wrong"),
        {"subprotocols": ["audio8.v1", "audio8.key.!!"]},
        {"subprotocols": ["audio8.v1", "audio8.key._w"]},  # not UTF-8
        {"subprotocols": ["token", "wrong"]},
        {"subprotocols": [OTHER, "token"]},
        {**bearer("wrong"), **subprotocols(KEY)},  # the header goes first
    ],
)
async def test_a_client_without_one_is_refused_before_the_upgrade(locked, log, options):
    response = await refused(locked, **options)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert b'"unauthorized"' in response.body and KEY.encode() not in response.body
    assert "connection open" not in log.text


async def test_a_key_has_so_many_connections(run_gateway):
    settings = replace(SETTINGS, limits=Limits(key_connections=2))
    async with run_gateway(ScriptedEngine(), settings) as gateway, await gateway.client(**bearer(OTHER)):
        async with await gateway.client(**bearer(KEY)), await gateway.client(**subprotocols(KEY)):
            response = await refused(gateway, **bearer(KEY))
            assert response.status_code == 429 and response.headers["Retry-After"] == "1"
            assert b'"rate_limited"' in response.body
            await (await gateway.client(**bearer(OTHER))).socket.close()
        async with await gateway.client(**bearer(KEY)) as client:
            assert client.ready


async def test_a_key_has_so_many_contexts_on_all_its_connections(run_gateway):
    engine = ScriptedEngine()
    engine.gate.clear()
    settings = replace(SETTINGS, limits=Limits(key_contexts=3))
    async with run_gateway(engine, settings) as gateway:
        one, two = await gateway.client(**bearer(KEY)), await gateway.client(**bearer(KEY))
        other = await gateway.client(**bearer(OTHER))
        for name in "ab":
            await one.speak("Hi.", context_id=name)
        await one.pong()
        for name in "cde":
            await two.speak("Hi.", context_id=name)
        for name in "de":
            assert (await two.whole(name)).types == ["error"]
            assert two.contexts[name].end["code"] == "too_many_contexts"
        await other.speak("Hi.", context_id="a")
        await one.say("input.cancel", context_id="a")
        await one.whole("a")
        await two.speak("Hi.", context_id="f")
        engine.gate.set()
        for client, name in ((one, "b"), (two, "c"), (two, "f"), (other, "a")):
            assert (await client.whole(name)).audio
            await client.socket.close()


async def test_without_keys_there_is_no_limit_of_a_key(run_gateway):
    limits = Limits(key_connections=1, key_contexts=1)
    gateway_for_all = run_gateway(ScriptedEngine(), Settings(limits=limits))
    async with gateway_for_all as gateway, await gateway.client(), await gateway.client() as client:
        for name in "ab":
            await client.speak("Hi.", context_id=name)
        assert (await client.whole("b")).audio


async def test_the_page_and_health_stay_open_and_nothing_else_is_told(locked):
    async with ClientSession() as http:
        for path, status in (("/", 200), ("/healthz", 200), ("/readyz", 200), ("/v1/stream", 401)):
            assert (await http.get(f"http://127.0.0.1:{locked.port}{path}")).status == status


async def test_a_foreign_page_is_refused_even_with_a_key(locked):
    assert (await refused(locked, origin="https://evil.example", **bearer(KEY))).status_code == 403


async def test_without_keys_a_key_is_no_harm(gateway):
    async with await gateway.client(**subprotocols(KEY)) as client:
        assert client.socket.subprotocol == "audio8.v1"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /v1/stream?token=SECRET\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://[x/v1/stream?token=SECRET HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer SECRET\x01\r\n\r\n",
        b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization : Bearer SECRET\r\n\r\n",
        b"GET /v1/stream?token=SECRET HTTP/1.1\r\nHost: localhost\r\nSec-WebSocket-Protocol: audio8.key.SECRET\r\n"
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 99\r\n\r\n",
    ],
)
async def test_a_malformed_request_is_logged_without_its_key(gateway, log, request_bytes):
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(request_bytes)
    async with asyncio.timeout(5):
        assert b" 400 " in await reader.readline()
    writer.close()
    assert "SECRET" not in log.text and "Traceback" not in log.text


@pytest.mark.parametrize("where", ["before the upgrade", "after it"])
async def test_a_fault_of_the_server_is_logged_without_the_key(locked, log, monkeypatch, where):
    def fail(*_: object) -> None:
        raise RuntimeError("scripted to fail")

    broken = {
        "before the upgrade": "gateway.http.gatekeeper.Gatekeeper.no_room",
        "after it": "gateway.http.endpoint.hello",
    }
    monkeypatch.setattr(broken[where], fail)
    encoded = subprotocols(KEY)["subprotocols"][-1]
    url = f"http://127.0.0.1:{locked.port}/v1/stream"
    headers = {"Sec-WebSocket-Protocol": encoded, **bearer(KEY)["additional_headers"]}
    async with ClientSession() as http:
        with contextlib.suppress(WSServerHandshakeError):
            async with http.ws_connect(url, params={"token": KEY}, headers=headers) as socket:
                await socket.receive()
    assert "scripted to fail" in log.text
    assert not any(secret in log.text for secret in (KEY, KEY[:8], encoded, "token="))


def test_keys_of_a_file_and_of_the_environment(tmp_path: Path):
    file = tmp_path / "keys"
    file.write_text("# for the phones\n\nphone  abc=\n  plain\n")
    keys = load_keys(file, "one, two two-key,#off")
    owners = {key: keys.owner(key) for key in ("abc=", "plain", "one", "two-key")}
    assert owners == {"abc=": "phone", "plain": "#2", "one": "#3", "two-key": "two"}
    assert not any(map(keys.owner, ("phone", "off", "#off", "", None, "\ud800")))
    assert "plain" not in repr(keys)
    assert load_keys(None, None) is None


@pytest.mark.parametrize("text", ["", "# none\n", "a b sEcReT\n", "name=sEcReT\n", "sEcReTé\n", "a sEcReT\na other\n"])
def test_keys_that_are_none_are_refused_without_being_told(tmp_path: Path, text: str):
    file = tmp_path / "keys"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(KeysError) as error:
        load_keys(file, None)
    assert "sEcReT" not in str(error.value)
    with pytest.raises(KeysError):
        load_keys(None, text)


def test_a_keys_file_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(KeysError, match=r"missing: No such file"):
        load_keys(tmp_path / "missing", None)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(KeysError, match=r"binary is not UTF-8"):
        load_keys(tmp_path / "binary", None)


def test_what_a_key_looks_like():
    assert is_key(KEY) and not any(map(is_key, ("", "a b", "a=b", "é", "a\n", "a,b")))
