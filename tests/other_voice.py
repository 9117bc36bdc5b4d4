"""A voice that the embedded model never heard: eSpeak NG, a formant synthesiser out of a package."""

from __future__ import annotations

import ctypes
from functools import cache

import espeakng_loader
import numpy as np

_SYNCHRONOUS, _UTF_8 = 2, 1  # of speak_lib.h
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


@cache
def _library() -> tuple[ctypes.CDLL, int]:
    """eSpeak NG with its data, and its rate."""
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, espeakng_loader.get_data_path().encode(), 0)
    assert rate > 0, "eSpeak NG does not find its data"
    return library, rate


def espeak(text: str, voice: str = "en-us") -> tuple[np.ndarray, int]:
    """What it says: float32 [n] in −1…1, and the rate."""
    library, rate = _library()
    parts: list[np.ndarray] = []

    def take(samples: ctypes.POINTER, count: int, _: int) -> int:
        if count:
            parts.append(np.ctypeslib.as_array(samples, (count,)).copy())
        return 0

    callback = _CALLBACK(take)
    library.espeak_SetSynthCallback(callback)
    assert library.espeak_SetVoiceByName(voice.encode()) == 0, voice
    data = text.encode()
    assert library.espeak_Synth(data, len(data) + 1, 0, 0, 0, _UTF_8, None, None) == 0
    return np.concatenate(parts).astype(np.float32) / 32768, rate
