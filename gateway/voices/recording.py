"""From the bytes of an audio file to the samples of a voice.  FFmpeg reads them, so this runs in a process of its own.

`read_recording` here is what that process does; `gateway.voices.recording_process` starts it.  Only containers and
codecs that recordings come in are opened: the others, playlists among them, would be ways to files and hosts of ours.
"""

from __future__ import annotations

import io
import resource
import sys

import av
import numpy as np
import soxr
from av.container import InputContainer

from gateway.voices.recording_rules import BAD_RECORDING_STATUS, FORMATS, LEAST_S, MOST_S, RATES, BadRecording

_CODECS = ("mp3", "mp3float", "flac", "vorbis", "opus", "libopus", "libvorbis")  # and PCM of all kinds
_SHORT_S = 0.1  # so much less than a file promises is no damage
_UNKNOWN_LENGTH = 2**31 - 2**16  # bytes of a WAV file; who writes one into a pipe says about so much, or more
_WINDOW_S = 0.05
_AUDIBLE = 10 ** (-45 / 20)
_LEAST_AUDIBLE_S = 0.5
_MEMORY_BYTES = 2**30  # of addresses; libraries take a third of it before they have read anything
_PROCESSOR_S = 10
_FULL, _MOST_FULL = 0.98, 0.005  # full scale, and the share of samples that may reach it: good limiters stay far below


def read_recording(data: bytes, rate: int) -> np.ndarray:
    """The samples of an audio file at `rate`, one channel: float32 [n] in −1…1.  Raises BadRecording."""
    try:
        with av.open(io.BytesIO(data), format=_format(data)) as container:
            samples, source_rate = _decode(container)
    except av.error.FFmpegError as error:
        raise BadRecording(f"the file is damaged, or no {FORMATS}: {error.strerror}") from error
    _check(samples, source_rate)
    return np.clip(soxr.resample(samples, source_rate, rate, quality="VHQ"), -1.0, 1.0)


def _format(data: bytes) -> str:
    """FFmpeg's name of the container, by its first bytes."""
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        promised = int.from_bytes(data[4:8], "little") + 8
        if len(data) < promised < _UNKNOWN_LENGTH:
            raise BadRecording(f"the file is cut off: it has {len(data)} of the {promised} bytes that it promises")
        return "wav"
    for magic, name in ((b"fLaC", "flac"), (b"OggS", "ogg"), (b"\x1a\x45\xdf\xa3", "matroska"), (b"ID3", "mp3")):
        if data.startswith(magic):
            return name
    if len(data) > 2 and data[0] == 0xFF and data[1] & 0xE0 == 0xE0:
        return "mp3"
    raise BadRecording("the file is empty" if not data else f"the file is no {FORMATS}")


def _decode(container: InputContainer) -> tuple[np.ndarray, int]:
    """-> float32 [n] of one channel, and the rate.  It stops when the longest time is over, whatever may follow."""
    stream = _stream(container)
    rate = stream.codec_context.sample_rate
    if not RATES[0] <= rate <= RATES[1]:
        raise BadRecording(f"the sample rate is {rate} Hz; it must be from {RATES[0]} to {RATES[1]}")
    if not 1 <= stream.codec_context.channels <= 2:
        raise BadRecording(f"the file has {stream.codec_context.channels} channels; it must be mono or stereo")
    promised_s = float(stream.duration * stream.time_base) if stream.duration else 0.0
    to_float = av.AudioResampler(format="fltp")
    pieces, count = [], 0
    for frame in container.decode(stream):
        for converted in to_float.resample(frame):
            pieces.append(converted.to_ndarray().mean(axis=0))  # float32 [channels, n]
            count += converted.samples
        if count > MOST_S * rate:
            raise BadRecording(f"the recording is longer than {MOST_S:g} s")
    if container.format.name == "flac" and count < (promised_s - _SHORT_S) * rate:
        raise BadRecording(f"the file is cut off: it has {count / rate:.1f} of the {promised_s:.1f} s that it promises")
    return np.concatenate(pieces) if pieces else np.zeros(0, np.float32), rate


def _stream(container: InputContainer) -> av.AudioStream:
    """The one track; a picture beside it, as music files have, is none."""
    video = [each for each in container.streams.video if not each.disposition & av.stream.Disposition.attached_pic]
    if video:
        raise BadRecording("the file has a video track; a recording of a voice is wanted")
    if len(container.streams.audio) != 1:
        raise BadRecording(f"the file has {len(container.streams.audio)} audio tracks; it must have one")
    stream = container.streams.audio[0]
    name = stream.codec_context.name
    if name not in _CODECS and not name.startswith("pcm_"):
        raise BadRecording(f"the file's codec is {name}; it must be PCM, MP3, FLAC, Vorbis or Opus")
    return stream


def _check(samples: np.ndarray, rate: int) -> None:
    """Raises BadRecording if there is too little, too much, or no voice in it."""
    seconds = len(samples) / rate
    if not LEAST_S <= seconds <= MOST_S:
        raise BadRecording(f"the recording is {seconds:.2f} s long; it must be from {LEAST_S:g} to {MOST_S:g} s")
    if not np.isfinite(samples).all():
        raise BadRecording("the recording has samples that are no numbers")
    full = float(np.mean(np.abs(samples) >= _FULL))
    if full > _MOST_FULL:
        raise BadRecording(f"the recording is clipped: {100 * full:.1f} % of its samples are at full scale")
    window = int(rate * _WINDOW_S)
    windows = samples[: len(samples) // window * window].reshape(-1, window).astype(np.float64)
    audible_s = float(np.sum(windows.std(axis=1) >= _AUDIBLE)) * _WINDOW_S
    if audible_s < _LEAST_AUDIBLE_S:
        raise BadRecording(f"the recording is silent or far too quiet: {audible_s:.2f} s of it are above −45 dB")


def main() -> int:
    """A file on standard input, the rate as argument; on standard output the samples, or why there are none."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR_S, _PROCESSOR_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # it writes no files, only to a pipe
    try:
        output, status = read_recording(sys.stdin.buffer.read(), int(sys.argv[1])).astype("<f4").tobytes(), 0
    except BadRecording as bad:
        output, status = str(bad).encode(), BAD_RECORDING_STATUS
    sys.stdout.buffer.write(output)
    return status


if __name__ == "__main__":
    sys.exit(main())
