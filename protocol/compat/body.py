"""The body of an HTTP request: a JSON object."""

from __future__ import annotations

from collections.abc import Mapping

from protocol.codes import ErrorCode, Refusal
from protocol.text import has_few_values, parse_json, shown


def read_object(body: bytes) -> Mapping[str, object]:
    """Its fields.  Raises Refusal."""
    if not has_few_values(body):
        raise Refusal(ErrorCode.MESSAGE_TOO_BIG, "the body of the request has too many values")
    try:
        value = parse_json(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise Refusal(ErrorCode.BAD_JSON, "the body of the request must be JSON in UTF-8") from None
    if not isinstance(value, dict):
        raise Refusal(ErrorCode.BAD_MESSAGE, f"the body of the request must be a JSON object; got {shown(value)}")
    return value
