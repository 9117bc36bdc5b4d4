"""What a recording of a voice has to be, for the process that reads it and the one that asks for it."""

from __future__ import annotations

LEAST_S, MOST_S = 1.0, 30.0
RATES = (8000, 192_000)  # samples per second: from, to
FORMATS = "WAV, MP3, FLAC, OGG or WebM"
BAD_RECORDING_STATUS = 3  # of the process that reads it: its standard output says what is wrong


class BadRecording(Exception):
    """The file is no recording of a voice that could be used; the message says why, for whoever sent it."""
