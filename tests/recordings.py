"""Recordings of voices as files: the embedded voices' own speech, in every container, and ways to spoil it."""

from __future__ import annotations

import functools
import io

import av
import numpy as np
import soundfile
import soxr
import torch

from inference.checkpoint import Checkpoint

RATE = 44100
VOICES = ("aria", "clara", "juno", "milo")


@functools.cache
def speech(voice: str = "aria") -> np.ndarray:
    """What a voice of the embedded checkpoint says in its reference, some 3.4 s: float32 [n] at RATE."""
    checkpoint = Checkpoint.open(None)
    codes = checkpoint.voices()[voice].reference.codes.astype(np.int64)
    with torch.inference_mode():
        return checkpoint.load_codec("float32").decode(torch.from_numpy(codes)[None])[0].numpy()


def transcript(voice: str = "aria") -> str:
    """What it says."""
    return Checkpoint.open(None).voices()[voice].reference.text


def wav(samples: np.ndarray, rate: int = RATE, subtype: str = "PCM_16") -> bytes:
    """float [n] or [n, channels]."""
    return sound_file(samples, "WAV", rate, subtype)


def sound_file(samples: np.ndarray, kind: str, rate: int = RATE, subtype: str | None = None) -> bytes:
    """Of the kinds that libsndfile writes: WAV, FLAC, OGG, MP3."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind, subtype=subtype)
    return file.getvalue()


def webm(samples: np.ndarray, rate: int = 48000, video: bool = False) -> bytes:
    """As a browser records: Opus in WebM, without a length."""
    file = io.BytesIO()
    with av.open(file, "w", format="webm", options={"live": "1"}) as container:
        stream = container.add_stream("libopus", rate=rate, layout="mono")
        picture = container.add_stream("libvpx", rate=10, width=64, height=64, pix_fmt="yuv420p") if video else None
        frame = av.AudioFrame.from_ndarray(samples.astype(np.float32)[None], format="flt", layout="mono")
        frame.rate = rate
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        if picture is not None:
            black = av.VideoFrame(64, 64, "yuv420p")
            container.mux(picture.encode(black))
            container.mux(picture.encode(None))
    return file.getvalue()


def resampled(samples: np.ndarray, rate: int) -> np.ndarray:
    """From RATE to another rate."""
    return soxr.resample(samples, RATE, rate)
