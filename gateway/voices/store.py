"""Voices on disk: two files each, `NAME.json` and `NAME.safetensors`, below a directory for each model.

A voice is there once its JSON is: that is written last and removed first, and both appear whole or not at all.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from inference.messages import ModelInfo, Reference, VoiceInfo

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")  # safe in a path, a URL and a log

log = logging.getLogger(__name__)

_TEMPORARY = ".new"
_STRINGS = ("language", "description", "text", "consent", "created_at")


@dataclass(frozen=True, slots=True, eq=False)
class UploadedVoice:
    """`consent`: how the speaker's consent was stated; `owner`: the name of the API key that brought it, None without
    keys; `created_at`: ISO 8601, UTC."""

    info: VoiceInfo
    reference: Reference
    consent: str
    owner: str | None
    created_at: str


class VoiceStore:
    """Blocking: files are small, but a disk may be slow, so call it in a thread where others wait."""

    def __init__(self, directory: Path, model: ModelInfo) -> None:
        """Codes are words of one model's codec: voices of another model are another directory's."""
        self._directory, self._model = directory / re.sub(r"[^A-Za-z0-9_-]", "_", model.name), model

    def load(self) -> dict[str, UploadedVoice]:
        """All voices by name.  One that is damaged is told in the log and left alone; unfinished files are removed."""
        voices: dict[str, UploadedVoice] = {}
        for file in sorted(self._directory.glob("*")):
            try:
                if file.suffix == _TEMPORARY:
                    file.unlink(missing_ok=True)
                elif file.suffix == ".json":
                    voices[file.stem] = self._read(file)
            except (OSError, ValueError, SafetensorError) as error:
                log.warning("voice file %s cannot be used: %s", file, error)
        return voices

    def save(self, voice: UploadedVoice) -> None:
        """Raises OSError, and then nothing of it is left."""
        name = voice.info.name
        values = {
            "language": voice.info.language,
            "description": voice.info.description,
            "text": voice.reference.text,
            "consent": voice.consent,
            "created_at": voice.created_at,
            "owner": voice.owner,
        }
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._write(self._codes_file(name), save({"codes": voice.reference.codes}))
            self._write(self._json_file(name), json.dumps(values, indent=2, ensure_ascii=False).encode())
        except OSError:
            self.delete(name)
            raise

    def delete(self, name: str) -> None:
        """Without effect if there is none."""
        self._json_file(name).unlink(missing_ok=True)
        self._codes_file(name).unlink(missing_ok=True)

    def _json_file(self, name: str) -> Path:
        return self._directory / f"{name}.json"

    def _codes_file(self, name: str) -> Path:
        return self._directory / f"{name}.safetensors"

    def _read(self, file: Path) -> UploadedVoice:
        """Raises ValueError for what was not written by `save`."""
        name = file.stem
        if not NAME.fullmatch(name):
            raise ValueError("its name is none of a voice")
        values = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(values, dict) or not all(isinstance(values.get(key), str) for key in _STRINGS):
            raise ValueError(f"it must have the strings {', '.join(_STRINGS)}")
        codes = load_file(self._codes_file(name)).get("codes")
        books = self._model.num_codebooks
        if codes is None or codes.dtype != np.uint16 or codes.ndim != 2 or codes.shape[0] != books or not codes.size:
            raise ValueError(f"its safetensors must hold codes, uint16 [{books}, frames]")
        info = VoiceInfo(name, values["language"], values["description"])
        reference = Reference(values["text"], codes)
        return UploadedVoice(info, reference, values["consent"], values.get("owner"), values["created_at"])

    def _write(self, file: Path, data: bytes) -> None:
        """Whole or not at all, even if the machine stops in the middle."""
        temporary = file.with_name(f"{file.stem}.{secrets.token_hex(4)}{_TEMPORARY}")
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as output:
                output.write(data)
                output.flush()
                os.fsync(output.fileno())
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
        directory = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
