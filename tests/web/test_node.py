"""Runs the page's own tests, which Node's test runner executes: everything in `web/` that needs no browser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = sorted(Path(__file__).parent.glob("*.test.mjs"))
NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="Node is not installed; it runs the tests of the page's modules")
@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name.removesuffix(".test.mjs"))
def test_module(path: Path) -> None:
    """One file of tests passes."""
    result = subprocess.run([NODE, "--test", str(path)], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
