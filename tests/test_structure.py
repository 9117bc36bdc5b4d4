"""Rules of the tree that no single part can keep: who may import whom, and that pages speak of what exists."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OWN_PACKAGES = {"gateway", "inference", "protocol", "tests"}
FOLDERS = ("protocol", "inference", "gateway", "web", "deploy", "docs", "examples", "tests")
PAGES = [
    page.relative_to(ROOT)
    for page in (ROOT / "README.md", ROOT / "protocol" / "SPEC.md", *(ROOT / "docs").rglob("*.md"))
]
SHARED_WITH_GATEWAY = ("messages", "deploy", "channel", "connector")  # modules of inference
POLICY = (
    "average",
    "chunking",
    "costs",
    "deadlines",
    "decode_queue",
    "records",
    "report",
    "ring",
    "scheduler",
    *SHARED_WITH_GATEWAY,
)


def sources(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found
    return found


def imports(path: Path) -> Iterator[str]:
    """Full names of the modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names if node.module in OWN_PACKAGES)


def top(module: str) -> str:
    return module.partition(".")[0]


@pytest.mark.parametrize("path", sources("protocol"), ids=lambda path: path.name)
def test_protocol_needs_only_the_standard_library_and_orjson(path: Path) -> None:
    """The client may use more, and the rest of the protocol does not know it."""
    is_client = path.name.startswith("client")
    modules = set(imports(path))
    more = {"numpy", "websockets"} if is_client else set()
    assert {top(module) for module in modules} <= sys.stdlib_module_names | {"orjson", "protocol"} | more
    assert is_client or not any(module.startswith("protocol.client") for module in modules)


@pytest.mark.parametrize("path", sources("inference"), ids=lambda path: path.name)
def test_inference_knows_neither_gateway_nor_protocol(path: Path) -> None:
    assert not {top(module) for module in imports(path)} & {"gateway", "protocol", "tests"}


@pytest.mark.parametrize("path", sources("gateway"), ids=lambda path: path.name)
def test_gateway_imports_no_torch(path: Path) -> None:
    modules = set(imports(path))
    assert not {top(module) for module in modules} & {"torch", "transformers", "tests"}
    allowed = tuple(f"inference.{name}" for name in SHARED_WITH_GATEWAY)
    assert all(module.startswith(allowed) for module in modules if top(module) == "inference")


def loaded_by(*modules: str) -> set[str]:
    """Top names of all that is loaded once these modules are, in a fresh interpreter."""
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert set(modules) <= set(loaded)
    return {top(module) for module in loaded}


def test_gateway_runs_without_torch() -> None:
    assert not {"torch", "transformers"} & loaded_by(
        "gateway.cli", "gateway.server", "gateway.say.command", "gateway.bench.command"
    )


def test_the_encoders_library_is_loaded_when_it_is_needed() -> None:
    """It takes 18 MB, and most gateways speak plain samples only."""
    assert "av" not in loaded_by("gateway.cli", "gateway.server", "gateway.say.command")


def test_policy_runs_without_torch() -> None:
    assert not {"torch", "transformers"} & loaded_by(*(f"inference.{name}" for name in POLICY))


def test_protocol_runs_without_anything_else() -> None:
    assert not {"numpy", "aiohttp", "torch", "gateway", "inference"} & loaded_by("protocol.session")


def test_client_runs_without_the_server() -> None:
    assert not {"aiohttp", "torch", "gateway", "inference"} & loaded_by("protocol.client")


def test_adapters_know_their_framework_and_the_client_only() -> None:
    """And nothing of the gateway knows them."""
    for path in sources("gateway"):
        modules = set(imports(path))
        if path.parent.name == "integrations":
            assert not {top(module) for module in modules} & {"gateway", "inference", "aiohttp"}, path
        else:
            assert not any(module.startswith("gateway.integrations") for module in modules), path


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_pages_name_what_exists(page: Path) -> None:
    """Links from where the page is, paths from the root."""
    text = (ROOT / page).read_text(encoding="utf-8")
    links = {link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link}
    paths = set(re.findall(r"`((?:" + "|".join(FOLDERS) + r")/[\w./-]*)`", text))
    missing = {link for link in links if not (ROOT / page.parent / link).exists()}
    missing |= {path for path in paths if not (ROOT / path).exists()}
    assert not missing


def test_every_command_of_the_readme_exists() -> None:
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
    targets = set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    used = set(re.findall(r"\bmake ([a-z-]+)", text))
    assert {"serve", "test"} <= used <= targets
