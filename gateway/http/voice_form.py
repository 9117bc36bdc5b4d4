"""The form of a voice upload, `multipart/form-data`, read with a bound on everything."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import BodyPartReader, web

from protocol.codes import ErrorCode

_AUDIO = "audio_sample"
_TEXT_FIELDS = {"name": 64, "ref_text": 1000, "consent": 200, "language": 16, "description": 200}  # characters
_NEEDED = ("name", _AUDIO, "ref_text", "consent")
_NO_CONSENT = ("", "0", "false", "no")
_ENVELOPE_BYTES = 64 * 1024  # of a request, besides the file


class FormError(Exception):
    """What is wrong with a request, and how to say it."""

    def __init__(self, status: HTTPStatus, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code

    @classmethod
    def of(cls, field: str, rule: str, code: ErrorCode = ErrorCode.BAD_VALUE) -> FormError:
        """A field has a wrong value."""
        return cls(HTTPStatus.BAD_REQUEST, code, f"{field} {rule}")


@dataclass(frozen=True, slots=True)
class VoiceForm:
    """The fields, of allowed length; `language` and `description` may be empty."""

    name: str
    audio: bytes
    text: str
    consent: str
    language: str
    description: str


async def read_form(request: web.Request, most_audio_bytes: int) -> VoiceForm:
    """Raises FormError.  No more is read than may be."""
    if request.content_type != "multipart/form-data":
        raise FormError.of("the body", f"must be multipart/form-data; got {request.content_type}")
    if (request.content_length or 0) > most_audio_bytes + _ENVELOPE_BYTES:
        raise _too_big(most_audio_bytes)
    fields: dict[str, bytes] = {}
    try:
        async for part in await request.multipart():
            name = part.name if isinstance(part, BodyPartReader) else None
            if name != _AUDIO and name not in _TEXT_FIELDS:
                known = ", ".join((_AUDIO, *_TEXT_FIELDS))
                raise FormError.of(f"there is no field {name!r};", f"fields: {known}", ErrorCode.UNKNOWN_FIELD)
            if name in fields:
                raise FormError.of(name, "is given twice")
            fields[name] = await _read(part, most_audio_bytes if name == _AUDIO else 4 * _TEXT_FIELDS[name])
    except ValueError as error:
        raise FormError.of("the body", f"is no valid multipart/form-data: {error}", ErrorCode.BAD_MESSAGE) from error
    for name in _NEEDED:
        if name not in fields:
            raise FormError.of(name, f"is needed; needed are {', '.join(_NEEDED)}", ErrorCode.BAD_MESSAGE)
    return _form(fields)


async def _read(part: BodyPartReader, most: int) -> bytes:
    data = bytearray()
    while chunk := await part.read_chunk():
        data += chunk
        if len(data) > most:
            raise _too_big(most) if part.name == _AUDIO else FormError.of(part.name, f"must be at most {most} bytes")
    return bytes(data)


def _form(fields: dict[str, bytes]) -> VoiceForm:
    texts = {name: _text(name, fields.get(name, b"")) for name in _TEXT_FIELDS}
    if not texts["ref_text"]:
        raise FormError.of("ref_text", "must be what is said in the recording")
    if texts["consent"].lower() in _NO_CONSENT:
        raise FormError.of(
            "consent", "must say that the speaker has agreed, for example true, or where that is recorded"
        )
    return VoiceForm(
        texts["name"], fields[_AUDIO], texts["ref_text"], texts["consent"], texts["language"], texts["description"]
    )


def _text(name: str, data: bytes) -> str:
    try:
        text = " ".join(data.decode().split())
    except UnicodeDecodeError:
        raise FormError.of(name, "must be UTF-8") from None
    if len(text) > _TEXT_FIELDS[name]:
        raise FormError.of(name, f"must have at most {_TEXT_FIELDS[name]} characters")
    return text


def _too_big(most: int) -> FormError:
    message = f"{_AUDIO} must be at most {most} bytes"
    return FormError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, ErrorCode.MESSAGE_TOO_BIG, message)
