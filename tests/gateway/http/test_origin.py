"""Which pages may connect."""

from __future__ import annotations

import pytest

from gateway.http.origin import OriginPolicy

ALLOWED = [
    (None, "localhost:8080", "127.0.0.1"),  # no browser
    (None, "[::1]:8080", "::1"),
    ("http://localhost:8080", "localhost:8080", "127.0.0.1"),
    ("http://127.0.0.1:3000", "127.0.0.1:8080", "127.0.0.1"),  # another local page
    ("http://[::1]:8080", "[::1]:8080", "::1"),
    ("https://speak.example", "speak.example", "10.0.0.5"),  # same origin
    ("https://speak.example", "speak.example:443", "10.0.0.5"),
    ("http://192.168.1.7:8080", "192.168.1.7:8080", "192.168.1.7"),
    ("http://localhost:8080", "localhost:8080", "172.17.0.2"),  # through a container's published port
    ("https://app.example", "127.0.0.1:8080", "127.0.0.1"),  # listed
]
REFUSED = [
    ("https://evil.example", "localhost:8080", "127.0.0.1"),
    ("null", "localhost:8080", "127.0.0.1"),
    ("http://evil.example:8080", "evil.example:8080", "127.0.0.1"),  # a name that was made to point here
    (None, "evil.example:8080", "127.0.0.1"),
    ("http://localhost:80000", "localhost:8080", "127.0.0.1"),
    ("http://localhost.evil.example", "localhost:8080", "127.0.0.1"),
    ("https://app.example.evil.example", "127.0.0.1:8080", "127.0.0.1"),
    ("http://app.example", "127.0.0.1:8080", "127.0.0.1"),
    ("http://localhost:8080/path", "localhost:8080", "127.0.0.1"),
    ("http://user@localhost", "localhost:8080", "127.0.0.1"),
    ("file://", "localhost:8080", "127.0.0.1"),
    ("https://evil.example", "speak.example", "10.0.0.5"),
    ("http://speak.example:81", "speak.example", "10.0.0.5"),
    ("", "localhost:8080", "127.0.0.1"),
]


PROXIED = OriginPolicy(("https://App.example:443",), ("speak.example", "::1"))


@pytest.mark.parametrize(("origin", "host", "local"), ALLOWED)
def test_allowed(origin, host, local):
    assert OriginPolicy(("https://app.example",)).refusal(origin, host, local) is None


@pytest.mark.parametrize(("origin", "host", "local"), REFUSED)
def test_refused(origin, host, local):
    assert "not allowed" in OriginPolicy(("https://app.example",)).refusal(origin, host, local)


@pytest.mark.parametrize(
    ("origin", "host", "local"),
    [
        (None, "speak.example", "127.0.0.1"),  # a proxy on this machine
        (None, "SPEAK.example:8443", "10.0.0.5"),
        ("https://speak.example", "speak.example", "127.0.0.1"),
        ("https://app.example", "speak.example", "10.0.0.5"),
        (None, "[::1]:8080", "10.0.0.5"),
        (None, "localhost:8080", "127.0.0.1"),
    ],
)
def test_listed_hosts(origin, host, local):
    assert PROXIED.refusal(origin, host, local) is None


@pytest.mark.parametrize(
    ("origin", "host", "local"),
    [
        (None, "evil.example", "127.0.0.1"),
        (None, "evil.example", "10.0.0.5"),
        (None, "10.0.0.5", "10.0.0.5"),  # with a list it is the list
        (None, "a.speak.example", "10.0.0.5"),
        ("https://app.example", "evil.example", "10.0.0.5"),
        ("https://app.example:444", "speak.example", "10.0.0.5"),
        ("https://a.app.example", "speak.example", "10.0.0.5"),
    ],
)
def test_hosts_that_are_not_listed(origin, host, local):
    assert "not allowed" in PROXIED.refusal(origin, host, local)
