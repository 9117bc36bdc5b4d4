"""What a person may give as the address of a gateway."""

from __future__ import annotations

import pytest

from gateway.address import AddressError, endpoint_url


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("ws://127.0.0.1:8080", "ws://127.0.0.1:8080/v1/stream"),
        ("http://host:1/", "ws://host:1/v1/stream"),
        ("https://host", "wss://host/v1/stream"),
        ("wss://host/proxy/v1/stream", "wss://host/proxy/v1/stream"),
    ],
)
def test_addresses(given: str, expected: str) -> None:
    assert endpoint_url(given) == expected


@pytest.mark.parametrize("given", ["", "host:8080", "127.0.0.1", "ftp://host"])
def test_wrong_addresses(given: str) -> None:
    with pytest.raises(AddressError, match="no address of a gateway"):
        endpoint_url(given)
