"""What tests of several parts share."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # helpers of the tests: fill, scripted_engine, …

# Run in the background of a shell, tests and the processes they start would ignore Ctrl-C, which some are about.
signal.signal(signal.SIGINT, signal.default_int_handler)
