"""Where things lie: page and deploy config inside the package once installed, beside it in a checkout; user data."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _find(relative: str) -> Path:
    """The file or folder `relative` of the installed package or, in a checkout, of the repository."""
    installed = _PACKAGE / relative
    return installed if installed.exists() else _PACKAGE.parent / relative


WEB: Path = _find("web")
DEPLOY_CONFIG: Path = _find("deploy/audio8_tts.yaml")


def default_voices_dir() -> Path | None:
    """Where uploaded voices are kept: below `$XDG_DATA_HOME`, as the XDG Base Directory Specification has it; None for
    a user without a home."""
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    try:
        data = base if base.is_absolute() else Path.home() / ".local" / "share"
    except RuntimeError:  # containers may run as a user that their system does not know
        return None
    return data / "audio8-gateway" / "voices"
