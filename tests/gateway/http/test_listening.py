"""Where the server refuses to listen."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE

import pytest

from gateway.http.listening import ListenError, check_address


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost", "::ffff:127.0.0.1"])
def test_loopback_needs_no_keys(host):
    check_address(host, has_keys=False, allow_anonymous=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.7", "speak.example", "localhost.example"])
def test_other_addresses_need_keys_or_a_clear_word(host):
    check_address(host, has_keys=True, allow_anonymous=False)
    check_address(host, has_keys=False, allow_anonymous=True)
    with pytest.raises(ListenError, match="--allow-anonymous") as error:
        check_address(host, has_keys=False, allow_anonymous=False)
    assert host in str(error.value)


async def cannot_start(*arguments: str, **environment: str) -> str:
    """The one line that `audio8-gateway serve` leaves when it cannot start."""
    command = (sys.executable, "-m", "gateway.cli", "serve", "--port", "0", *arguments)
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **environment}, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(60):
        output, errors = await process.communicate()
    assert (process.returncode, output) == (1, b"")
    (line,) = errors.decode().splitlines()
    assert "cannot start: " in line
    return line


async def test_serve_says_in_one_line_why_it_does_not_listen():
    assert "AUDIO8_API_KEYS" in await cannot_start("--host", "0.0.0.0")
    assert "holds no API key" in await cannot_start("--host", "0.0.0.0", AUDIO8_API_KEYS="")
    assert "nothing: No such file" in await cannot_start("--api-keys-file", "nothing")
