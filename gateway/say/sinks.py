"""Where the `say` command puts audio: a file, a sound device, or a player program."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import wave
from pathlib import Path
from typing import Any, BinaryIO, Protocol

_SAMPLE_BYTES = 2  # s16le, one channel
_FILE_FORMATS = {".wav": "pcm", ".opus": "opus", ".mp3": "mp3"}  # name's ending -> response format


class SinkError(Exception):
    """Nothing here can take the audio; the message says what would help."""


class Sink(Protocol):
    """Takes s16le samples of one channel; `EncodedFile` takes the bytes of a file.

    `write` and `close` may block until there is room, or all is played.
    """

    def write(self, samples: bytes) -> None:
        """Take more samples."""

    def close(self) -> None:
        """Play or write what is left, then release everything."""

    def abort(self) -> None:
        """Fall silent at once and release everything.  May be called while `write` blocks in another thread."""


def response_format(output: Path | None) -> str:
    """In which format the gateway has to send what `output` (None: a player) takes; raises `SinkError`."""
    if output is None:
        return "pcm"
    if output.suffix.lower() not in _FILE_FORMATS:
        raise SinkError(f"cannot write {output}: its name must end in one of {', '.join(_FILE_FORMATS)}")
    return _FILE_FORMATS[output.suffix.lower()]


def open_sink(output: Path | None, sample_rate: int) -> Sink:
    """A file at `output`, or without one whatever can play here; raises `SinkError`."""
    if output is not None:
        return WavFile(output, sample_rate) if response_format(output) == "pcm" else EncodedFile(output)
    if (device := _sound_device(sample_rate)) is not None:
        return device
    for program, command in _player_commands(sample_rate).items():
        if shutil.which(program):
            return PlayerProgram(command)
    if shutil.which("afplay"):
        return FilePlayer("afplay", sample_rate)
    raise SinkError(
        "nothing here can play sound: install the Python package sounddevice (with PortAudio) or aplay, "
        "or write a file with -o out.wav"
    )


def _player_commands(sample_rate: int) -> dict[str, list[str]]:
    """Programs that play raw samples from standard input, best first."""
    rate = str(sample_rate)
    return {
        "aplay": ["aplay", "-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", rate, "-"],
        "paplay": ["paplay", "--raw", "--format=s16le", "--channels=1", f"--rate={rate}"],
    }


class WavFile:
    """A WAV file; complete once closed.  An aborted one keeps what was written."""

    def __init__(self, path: Path, sample_rate: int) -> None:
        self._stream = _open(path)
        self._file = wave.open(self._stream, "wb")  # noqa: SIM115  closed by `close`
        self._file.setnchannels(1)
        self._file.setsampwidth(_SAMPLE_BYTES)
        self._file.setframerate(sample_rate)

    def write(self, samples: bytes) -> None:
        """Append the samples."""
        self._file.writeframes(samples)

    def close(self) -> None:
        """Complete the header."""
        self._file.close()
        self._stream.close()

    abort = close


class EncodedFile:
    """A file of a format that is sent as a file.  An aborted one keeps what was written, and can be played."""

    def __init__(self, path: Path) -> None:
        self._file = _open(path)

    def write(self, data: bytes) -> None:
        """Append the bytes."""
        self._file.write(data)

    def close(self) -> None:
        """Complete the file."""
        self._file.close()

    abort = close


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise SinkError(f"cannot write {path}: {error.strerror}") from error


class PlayerProgram:
    """A program that plays what it reads from its standard input."""

    def __init__(self, command: list[str]) -> None:
        self._name = command[0]
        # A session of its own: Ctrl-C at the terminal is for us, and we stop the player.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def write(self, samples: bytes) -> None:
        """Hand the samples over; blocks while the program's buffer is full."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(samples)
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise SinkError(f"{self._name} has stopped with status {self._process.wait()}") from error

    def close(self) -> None:
        """Wait until all is played."""
        self._process.communicate()
        if self._process.returncode != 0:
            raise SinkError(f"{self._name} has stopped with status {self._process.returncode}")

    def abort(self) -> None:
        """Kill the program."""
        self._process.kill()
        self._process.wait()


class FilePlayer:
    """A program that only plays files: collects the samples and plays them at the end."""

    def __init__(self, program: str, sample_rate: int) -> None:
        self._program = program
        handle, name = tempfile.mkstemp(suffix=".wav")
        os.close(handle)
        self._path = Path(name)
        self._file = WavFile(self._path, sample_rate)

    def write(self, samples: bytes) -> None:
        """Collect the samples."""
        self._file.write(samples)

    def close(self) -> None:
        """Play all."""
        self._file.close()
        try:
            subprocess.run([self._program, os.fspath(self._path)], check=True)
        except subprocess.CalledProcessError as error:
            raise SinkError(f"{self._program} has stopped with status {error.returncode}") from error
        finally:
            self._path.unlink()

    def abort(self) -> None:
        """Throw away what was collected."""
        self._file.close()
        self._path.unlink(missing_ok=True)


class SoundDevice:
    """The default output device, through an open stream of the `sounddevice` package."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        stream.start()

    def write(self, samples: bytes) -> None:
        """Hand the samples over; blocks while the device's buffer is full."""
        self._stream.write(samples)

    def close(self) -> None:
        """Wait until all is played."""
        self._stream.stop()
        self._stream.close()

    def abort(self) -> None:
        """Stop the device at once."""
        self._stream.abort()
        self._stream.close()


def _sound_device(sample_rate: int) -> SoundDevice | None:
    """The default output device, None if the package, PortAudio or a device is missing."""
    try:
        import sounddevice
    except (ImportError, OSError):
        return None
    try:
        return SoundDevice(sounddevice.RawOutputStream(samplerate=sample_rate, channels=1, dtype="int16"))
    except sounddevice.PortAudioError:
        return None
