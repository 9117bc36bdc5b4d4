"""Certificates for tests, made on the spot."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

OPENSSL = shutil.which("openssl")


def make_certificate(folder: Path, name: str = "tls") -> tuple[Path, Path]:
    """A self-signed certificate for localhost and its key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days", "2")
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    command = (OPENSSL, "req", "-x509", *curve, *subject, "-out", certificate, "-keyout", key)
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key
