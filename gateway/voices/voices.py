"""The voices that can be chosen by name: the model's own, and those that were uploaded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator
from pathlib import Path

from gateway.engine.engine import Engine
from gateway.voices.store import UploadedVoice, VoiceStore
from inference.messages import ModelInfo, Reference, VoiceInfo

log = logging.getLogger(__name__)


class NameInUse(Exception):
    """Another voice has the name, or one that differs from it in case alone."""


class TooManyVoices(Exception):
    """As many voices are kept as may be."""


class UnknownVoice(Exception):
    """No uploaded voice has the name."""


class Voices(Collection[str]):
    """The names, as they are now.  Whoever speaks with a voice keeps it when it is deleted."""

    def __init__(self, engine: Engine, directory: Path | None, most: int) -> None:
        """`directory`: where uploaded ones are kept, None: only in memory; `most` of them."""
        self._engine, self._directory, self._most = engine, directory, most
        self._store: VoiceStore | None = None
        self._loaded: dict[str, UploadedVoice] | None = None
        self._coming: set[str] = set()  # names of those that are being written

    def __contains__(self, name: object) -> bool:
        return any(info.name == name for info in self.infos)

    def __iter__(self) -> Iterator[str]:
        return (info.name for info in self.infos)

    def __len__(self) -> int:
        return len(self.infos)

    @property
    def built_in(self) -> tuple[VoiceInfo, ...]:
        """The model's own, the default one first; none before it has been loaded."""
        return self._engine.info.voices if self._engine.info is not None else ()

    @property
    def uploaded(self) -> dict[str, UploadedVoice]:
        """By name; those of earlier runs, which are read once the model is known, come first."""
        if self._engine.info is None:
            return {}
        if self._loaded is None:
            self._loaded = self._load(self._engine.info)
        return self._loaded

    @property
    def infos(self) -> tuple[VoiceInfo, ...]:
        """The model's own voices, then the uploaded ones."""
        return (*self.built_in, *(voice.info for voice in self.uploaded.values()))

    def start(self) -> None:
        """The engine has started: read what is kept on disk, and let the engine prepare for it."""
        for voice in self.uploaded.values():
            self._engine.keep(voice.reference)

    def language(self, name: str | None) -> str | None:
        """What a voice speaks; None without a voice."""
        return next((info.language for info in self.infos if info.name == name), None)

    def reference(self, name: str | None) -> Reference | None:
        """What makes an uploaded voice; None for the model's own, which it knows by name."""
        voice = self.uploaded.get(name) if name is not None else None
        return voice.reference if voice is not None else None

    def check_free(self, name: str) -> None:
        """Raises NameInUse or TooManyVoices if no voice of that name can be added."""
        taken = {each.casefold() for each in (*self, *self._coming)}
        if name.casefold() in taken:
            raise NameInUse(f"a voice is called {name!r} already (upper and lower case are the same)")
        if len(self.uploaded) + len(self._coming) >= self._most:
            raise TooManyVoices(f"{self._most} uploaded voices are kept, which is the limit; delete one first")

    async def add(self, voice: UploadedVoice) -> None:
        """Keep it; it can be chosen when this returns.  Raises as `check_free`, and OSError if it cannot be written."""
        name = voice.info.name
        self.check_free(name)
        self._coming.add(name)
        try:
            if self._store is not None:
                await asyncio.to_thread(self._store.save, voice)
            self.uploaded[name] = voice
            self._engine.keep(voice.reference)
        finally:
            self._coming.discard(name)

    async def delete(self, name: str) -> None:
        """Raises UnknownVoice, also for the model's own, and OSError if its files cannot be removed."""
        if name not in self.uploaded:
            raise UnknownVoice(f"no uploaded voice is called {name!r}")
        voice = self.uploaded.pop(name)
        self._coming.add(name)  # nobody takes the name while its files go
        try:
            if self._store is not None:
                await asyncio.to_thread(self._store.delete, name)
        except OSError:
            self.uploaded[name] = voice
            raise
        finally:
            self._coming.discard(name)

    def _load(self, model: ModelInfo) -> dict[str, UploadedVoice]:
        """Those of earlier runs."""
        if self._directory is None:
            log.info("uploaded voices are kept in memory alone")
            return {}
        self._store = VoiceStore(self._directory, model)
        voices = self._store.load()
        for name in {info.name for info in model.voices} & voices.keys():
            log.warning("the uploaded voice %s is not used: a voice of the model has that name", name)
            del voices[name]
        log.info("uploaded voices: %d, kept in %s", len(voices), self._directory)
        return voices
