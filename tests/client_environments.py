"""Python environments for the tests of real client packages: one for each file in `clients/requirements/`.

They are made when they are first needed and kept in `.clients/` (git-ignored) until the file or the Python version
changes.  Installing needs the package index; where that fails the tests fail, with what the installer said.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CLIENTS = Path(__file__).parent / "clients"
PLACE = Path(__file__).parents[1] / ".clients"
INSTALL_S = 280  # of a slow network; the largest environment has 450 MB


def environment(client: str) -> Path:
    """The interpreter of the environment for `requirements/CLIENT.txt`; makes it where it is missing."""
    requirements = CLIENTS / "requirements" / f"{client}.txt"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256(version.encode() + requirements.read_bytes()).hexdigest()[:12]
    folder = PLACE / f"{client}-{digest}"
    if not folder.exists():
        PLACE.mkdir(exist_ok=True)
        for outdated in PLACE.glob(f"{client}-*"):
            shutil.rmtree(outdated)
        _make(folder, requirements)
    return folder / "bin" / "python"


def without_dependencies(requirement: str) -> Path:
    """Where the files of "package==version" lie, of which something else than its code is wanted."""
    folder = PLACE / requirement.replace("==", "-")
    if not folder.exists():
        PLACE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=PLACE) as made:
            _uv("pip", "install", "--quiet", "--no-deps", "--target", f"{made}/new", requirement)
            os.rename(f"{made}/new", folder)
    return folder


def _make(folder: Path, requirements: Path) -> None:
    """Whole or not at all: it gets its name when all is installed."""
    with tempfile.TemporaryDirectory(dir=PLACE) as made:
        _uv("venv", "--quiet", "--python", sys.executable, f"{made}/new")
        _uv("pip", "install", "--quiet", "--python", f"{made}/new/bin/python", "-r", str(requirements))
        os.rename(f"{made}/new", folder)


def _uv(*arguments: str) -> None:
    command = [sys.executable, "-m", "uv", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S)
    if done.returncode:
        raise RuntimeError(f"uv {' '.join(arguments)} failed: {done.stderr}")
