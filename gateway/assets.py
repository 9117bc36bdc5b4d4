"""Where the page and the shipped deploy config lie: inside the package once installed, beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _find(relative: str) -> Path:
    """The file or folder `relative` of the installed package or, in a checkout, of the repository."""
    installed = _PACKAGE / relative
    return installed if installed.exists() else _PACKAGE.parent / relative


WEB: Path = _find("web")
DEPLOY_CONFIG: Path = _find("deploy/audio8_tts.yaml")
