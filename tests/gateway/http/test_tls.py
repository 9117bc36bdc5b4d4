"""https and wss: a certificate made on the spot, and files that are no certificate."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
import ssl
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from certificates import OPENSSL, make_certificate
from checkpoints import write_checkpoint
from scripted_engine import ScriptedEngine
from stream_client import StreamClient
from websockets.exceptions import InvalidStatus

from gateway.http.listening import ListenError, listen, tls_context
from gateway.server import make_app, shut_down
from gateway.settings import Settings
from protocol.limits import Limits

pytestmark = pytest.mark.skipif(OPENSSL is None, reason="no openssl to make a certificate with")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return make_certificate(tmp_path)


@asynccontextmanager
async def secure_gateway(
    files: tuple[Path, Path], engine: ScriptedEngine, settings: Settings | None = None
) -> AsyncIterator[int]:
    """A gateway behind TLS; yields its port."""
    runner = web.AppRunner(make_app(engine, settings or Settings()), access_log=None)
    await runner.setup()
    listener = await listen(runner.server, "127.0.0.1", 0, tls_context(*files), handshake_s=5)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        await shut_down(runner.app)
        await runner.cleanup()


@pytest.fixture
async def secure_port(files) -> AsyncIterator[int]:
    async with secure_gateway(files, ScriptedEngine()) as port:
        yield port


async def test_speech_over_tls(files, secure_port):
    trusting = ssl.create_default_context(cafile=files[0])
    client = await StreamClient.open(secure_port, scheme="wss", ssl=trusting, origin=f"https://127.0.0.1:{secure_port}")
    async with client:
        assert client.socket.transport.get_extra_info("ssl_object").version() in ("TLSv1.2", "TLSv1.3")
        await client.speak("Nobody between us hears this sentence. Nor this one.")
        heard = await client.whole("_0")
        assert heard.end["type"] == "session.done" and heard.audio


async def test_say_takes_the_certificate_that_the_machine_trusts(files, secure_port, tmp_path, monkeypatch):
    url = f"https://localhost:{secure_port}"
    command = (sys.executable, "-m", "gateway.cli", "say", "Hello.", "-o", str(tmp_path / "out.wav"), "--url", url)
    for trusted, status in (("", 1), (str(files[0]), 0)):
        monkeypatch.setenv("SSL_CERT_FILE", trusted)
        process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
        async with asyncio.timeout(20):
            _, errors = await process.communicate()
        assert process.returncode == status, errors.decode()
        assert (b"SSL_CERT_FILE" in errors and b"starts one" not in errors) or status == 0
    assert (tmp_path / "out.wav").stat().st_size > 44


async def test_a_client_without_tls_does_no_harm(files, secure_port, caplog):
    reader, writer = await asyncio.open_connection("127.0.0.1", secure_port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    async with asyncio.timeout(5):
        assert b"200" not in await reader.read()
    writer.close()
    assert "Traceback" not in caplog.text
    async with await StreamClient.open(
        secure_port, scheme="wss", ssl=ssl.create_default_context(cafile=files[0])
    ) as client:
        assert client.ready


def test_both_files_or_none(files):
    assert tls_context(None, None) is None
    for certificate, key in ((files[0], None), (None, files[1])):
        with pytest.raises(ListenError, match="only one of them"):
            tls_context(certificate, key)


def test_wrong_files_are_named(files, tmp_path: Path):
    certificate, key = files
    text = tmp_path / "text.txt"
    text.write_text("no certificate")
    _, other_key = make_certificate(tmp_path, "other")
    with pytest.raises(ListenError, match=r"nothing\.pem: No such file"):
        tls_context(tmp_path / "nothing.pem", key)
    for wrong in ((text, key), (certificate, text), (certificate, other_key), (key, certificate)):
        with pytest.raises(ListenError, match=f"{wrong[0].name} with key .*{wrong[1].name}: "):
            tls_context(*wrong)


def test_an_encrypted_key_is_refused_instead_of_asking(files, tmp_path: Path):
    encrypted = tmp_path / "encrypted.key"
    command = (OPENSSL, "pkey", "-in", files[1], "-aes128", "-passout", "pass:secret", "-out", encrypted)
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(ListenError, match="encrypted"):
        tls_context(files[0], encrypted)


async def test_a_reader_that_has_stopped_is_cut_off_behind_tls_too(files):
    engine = ScriptedEngine()
    async with secure_gateway(files, engine, Settings(limits=Limits(write_stall_s=0.2))) as port:
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", port))
        raw.setblocking(False)
        trusting = ssl.create_default_context(cafile=files[0])
        client = await StreamClient.open(port, scheme="wss", ssl=trusting, sock=raw, max_queue=1)
        await client.speak("A sentence that nobody takes off the wire. " * 100)
        await engine.until(lambda: engine.submitted and not engine.live and engine.cancelled)
        client.socket.transport.abort()


async def test_who_dawdles_with_the_handshake_is_cut_off(files, tmp_path: Path):
    """Before TLS, within it, and in the request's headers."""
    arguments = ("--port", "0", "--limit", "handshake_s=0.5", "--model", write_checkpoint(tmp_path))
    tls = ("--tls-cert", files[0], "--tls-key", files[1])
    command = map(str, (sys.executable, "-m", "gateway.cli", "serve", *arguments, *tls))
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    try:
        async with asyncio.timeout(30):
            match = None
            while match is None:
                match = re.search(rb"listening at https://127\.0\.0\.1:(\d+)", await process.stderr.readline())
        port, trusting = int(match[1]), ssl.create_default_context(cafile=files[0])
        slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        slow[1][1].write(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a client's hello
        slow.append(await asyncio.open_connection("127.0.0.1", port, ssl=trusting))
        slow[2][1].write(b"GET /healthz HTTP/1.1\r\nHost:")
        async with asyncio.timeout(5):
            for reader, writer in slow:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
                writer.close()
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
            writer.close()
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(15):
            _, errors = await process.communicate()
        assert process.returncode == 0 and b"Traceback" not in errors
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_serve_with_a_certificate_and_keys(files, tmp_path: Path, monkeypatch):
    """The whole process, told so on its command line, on a tiny checkpoint of random weights."""
    monkeypatch.setenv("AUDIO8_API_KEYS", "phone the-key-of-the-phone")
    model = tmp_path / "model"
    model.mkdir()
    arguments = ("--host", "0.0.0.0", "--port", "0", "--device", "cpu", "--model", write_checkpoint(model))
    tls = ("--tls-cert", files[0], "--tls-key", files[1])
    command = map(str, (sys.executable, "-m", "gateway.cli", "serve", *arguments, *tls))
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    try:
        async with asyncio.timeout(90):
            line = (await process.stdout.readline()).decode()
        match = re.fullmatch(r"ready https://0\.0\.0\.0:(\d+)\n", line)
        assert match, line or (await process.stderr.read()).decode()
        trusting = ssl.create_default_context(cafile=files[0])
        for key, taken in (("the-key-of-the-phone", True), ("the-key-of-the-phon", False)):
            headers = {"Authorization": f"Bearer {key}"}
            opening = StreamClient.open(int(match[1]), scheme="wss", ssl=trusting, additional_headers=headers)
            if taken:
                async with await opening as client:
                    await client.say("session.config", max_new_tokens=5)
                    await client.speak("Random sounds.")
                    assert (await client.whole("_0")).audio
            else:
                with pytest.raises(InvalidStatus, match="401"):
                    await opening
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(15):
            _, errors = await process.communicate()
        assert process.returncode == 0
        assert b"key=phone" in errors and b"the-key" not in errors
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
