"""The user's reference names all that the code knows."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import protocol
from protocol.codes import ErrorCode
from protocol.config import SAMPLE_RATES, SessionConfig
from protocol.limits import Limits
from protocol.messages import Hello, MessageType, Metrics, Usage

SPEC = (Path(protocol.__file__).parent / "SPEC.md").read_text()


def _fields(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


@pytest.mark.parametrize("kind", [Limits, SessionConfig, Hello, Usage, Metrics])
def test_every_field_is_in_the_reference(kind):
    assert [name for name in _fields(kind) if f"`{name}`" not in SPEC] == []


def test_every_code_and_message_is_in_the_reference():
    assert [code for code in ErrorCode if f"`{code}`" not in SPEC] == []
    assert [kind for kind in MessageType if f"`{kind}`" not in SPEC] == []


def test_defaults_in_the_reference_are_those_of_the_code():
    values = dataclasses.asdict(Limits())
    for key in (
        "message_bytes",
        "config_message_bytes",
        "text_characters",
        "contexts",
        "waiting_contexts",
        "connections",
    ):
        assert f"| `{key}` | {values[key]} |" in SPEC
    assert ", ".join(map(str, SAMPLE_RATES)) in SPEC
