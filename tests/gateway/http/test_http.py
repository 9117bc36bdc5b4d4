"""What is answered over plain HTTP, and handshakes that are refused."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import ClientSession, WSServerHandshakeError, web
from scripted_engine import ScriptedEngine
from websockets.exceptions import InvalidStatus

from gateway.http.handshake import HandshakeGuard
from gateway.settings import Settings
from protocol.limits import Limits


@pytest.fixture
async def http():
    async with ClientSession() as session:
        yield session


async def test_health_and_readiness(run_gateway, http):
    engine = ScriptedEngine()
    engine.ready = False
    async with run_gateway(engine) as gateway:
        url = f"http://127.0.0.1:{gateway.port}"
        assert (await http.get(f"{url}/healthz")).status == 200
        answer = await http.get(f"{url}/readyz")
        assert answer.status == 503
        assert await answer.json() == {
            "status": "starting",
            "replicas": [{"ready": False, "restarts": 0, "stages": []}],
        }
        engine.ready = True
        answer = await http.get(f"{url}/readyz")
        assert answer.status == 200
        assert await answer.json() == {
            "status": "ready",
            "model": "scripted",
            "voices": ["ada", "bo"],
            "replicas": [
                {
                    "ready": True,
                    "restarts": 0,
                    "stages": [{"stage_id": 0, "device": "cpu"}, {"stage_id": 1, "device": "cpu"}],
                }
            ],
        }


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/web/app.js", "text/javascript; charset=utf-8"),
        ("/web/style.css", "text/css; charset=utf-8"),
    ],
)
async def test_the_page_and_its_files(gateway, http, path, kind):
    answer = await http.get(f"http://127.0.0.1:{gateway.port}{path}")
    assert answer.status == 200 and await answer.read()
    assert answer.headers["Content-Type"] == kind
    assert answer.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/web/nothing.js",
        "/web/..%2fpyproject.toml",
        "/web/%2fetc%2fpasswd",
        "/web/",
        "/web/%00.js",
        f"/web/{'a' * 300}.js",
    ],
    ids=range(7),
)
async def test_what_does_not_exist(gateway, http, path):
    answer = await http.get(f"http://127.0.0.1:{gateway.port}{path}")
    assert answer.status == 404
    assert (await answer.json())["code"] == "not_found"


async def test_a_method_that_does_not_exist(gateway, http):
    answer = await http.post(f"http://127.0.0.1:{gateway.port}/v1/stream")
    assert answer.status == 405 and "GET" in answer.headers["Allow"]
    assert (await answer.json())["code"] == "not_found"


async def test_the_stream_without_an_upgrade(gateway, http):
    answer = await http.get(f"http://127.0.0.1:{gateway.port}/v1/stream")
    assert answer.status == 426 and answer.headers["Upgrade"] == "websocket"
    assert (await answer.json())["code"] == "upgrade_required"


async def test_a_foreign_page_is_refused(gateway):
    with pytest.raises(InvalidStatus) as refused:
        await gateway.client(origin="https://evil.example")
    assert refused.value.response.status_code == 403
    assert b'"forbidden_origin"' in refused.value.response.body


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://app.example"}, 101),
        ({"Host": "speak.example"}, 101),
        ({"Host": "speak.example", "Origin": "https://speak.example"}, 101),
        ({"Origin": "https://app.example:444"}, 403),
        ({"Host": "other.example"}, 403),
        ({"Host": "other.example", "Origin": "https://app.example"}, 403),
    ],
)
async def test_allowed_origins_and_hosts(run_gateway, http, headers, status):
    settings = Settings(allowed_origins=("https://app.example",), allowed_hosts=("speak.example",))
    async with run_gateway(ScriptedEngine(), settings) as gateway:
        url = f"http://127.0.0.1:{gateway.port}/v1/stream"
        try:
            async with http.ws_connect(url, headers=headers) as socket:
                answered = 101 if (await socket.receive_json())["type"] == "session.ready" else None
        except WSServerHandshakeError as error:
            answered = error.status
        assert answered == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 101),  # a program that is no browser
        ({"Origin": "http://localhost:3000"}, 101),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example"}, 403),  # a name that was made to point here
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
        ({"Origin": "http://localhost:80000"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "http://127.0.0.1.evil.example"}, 403),
    ],
)
async def test_what_any_page_could_try(gateway, http, headers, status):
    try:
        async with http.ws_connect(f"http://127.0.0.1:{gateway.port}/v1/stream", headers=headers) as socket:
            answered = 101 if (await socket.receive_json())["type"] == "session.ready" else None
    except WSServerHandshakeError as error:
        answered = error.status
    assert answered == status


async def test_a_server_that_cannot_speak_yet_says_when_to_come_again(run_gateway):
    engine = ScriptedEngine()
    engine.ready = False
    async with run_gateway(engine) as gateway:
        with pytest.raises(InvalidStatus) as refused:
            await gateway.client()
        assert refused.value.response.status_code == 503
        assert refused.value.response.headers["Retry-After"] == "1"


async def test_more_connections_than_allowed(run_gateway):
    async with run_gateway(ScriptedEngine(), Settings(limits=Limits(connections=1))) as gateway, await gateway.client():
        with pytest.raises(InvalidStatus) as refused:
            await gateway.client()
        assert refused.value.response.status_code == 503
        assert b'"overloaded"' in refused.value.response.body


async def test_the_greeting(gateway):
    async with await gateway.client(subprotocols=["other", "audio8.v1"]) as client:
        assert client.socket.subprotocol == "audio8.v1"
        assert not client.socket.protocol.extensions  # no compression of audio, whatever is offered
        ready = client.ready
    assert ready["type"] == "session.ready" and ready["protocol"] == 1 and ready["model"] == "scripted"
    assert ready["voices"][0] == {"name": "ada", "language": "en", "description": "calm"}
    assert (ready["sample_rate"], ready["frame_samples"]) == (44100, 2048)
    assert ready["frame_rate"] == pytest.approx(21.533203125)
    assert ready["config"]["voice"] == "ada" and ready["config"]["seed"] == 42
    assert ready["limits"]["contexts"] == 8


async def test_a_client_that_is_silent_is_pinged_and_one_that_is_gone_is_dropped(run_gateway):
    limits = Limits(ping_interval_s=0.05, ping_timeout_s=0.1)
    engine = ScriptedEngine()
    engine.gate.clear()
    async with run_gateway(engine, Settings(limits=limits, tick_s=0.01)) as gateway:
        alive = await gateway.client()
        await alive.speak("Alive.")
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(
            b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        async with asyncio.timeout(5):
            while await reader.read(1000):
                pass
        engine.gate.set()
        assert (await alive.whole("_0")).audio
        await alive.socket.close()
        writer.close()


async def test_a_connection_without_a_request_is_closed(gateway, http):
    guard = HandshakeGuard(limit_s=10)

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="here")

    app = web.Application(middlewares=[guard.middleware])
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost:")
    assert await (await http.get(f"http://127.0.0.1:{port}/")).text() == "here"
    assert len(runner.server.connections) == 2
    guard.sweep(runner.server.connections, now=0.0)
    guard.sweep(runner.server.connections, now=9.9)
    assert len(runner.server.connections) == 2
    guard.sweep(runner.server.connections, now=10.0)
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    assert (await http.get(f"http://127.0.0.1:{port}/")).status == 200
    writer.close()
    await runner.cleanup()


@pytest.mark.parametrize("start", ["HEAD /v1/stream HTTP/1.1", "GET /v1/stream HTTP/1.0"])
async def test_an_upgrade_takes_a_get_of_http_1_1(gateway, start):
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13"
    writer.write(f"{start}\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{key}\r\n\r\n".encode())
    assert b" 426 " in await reader.readline()
    writer.close()
