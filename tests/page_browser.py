"""Helpers: the page in a real browser, on the gateway over a scripted engine that speaks a tone."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from playwright.async_api import Page, async_playwright
from running_gateway import running
from scripted_engine import FRAME_SAMPLES, ScriptedEngine

from gateway.settings import Settings

NATIVE_RATE = 44100
TONE_HZ = NATIVE_RATE * 20 / FRAME_SAMPLES  # whole periods in a frame: the tone goes on from segment to segment
TONE_LEVEL = 0.5
FRAMES = 12  # of each segment: 0.56 s

_RECORDER = (Path(__file__).parent / "web" / "recorder.js").read_text()
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--autoplay-policy=document-user-activation-required",
]  # fmt: skip


def tone(first: int, count: int) -> np.ndarray:
    """The scripted engine's waveform, float32 [count]."""
    angle = 2 * np.pi * TONE_HZ / NATIVE_RATE * np.arange(first, first + count)
    return (TONE_LEVEL * np.sin(angle)).astype(np.float32)


def tone_engine(speed: float | None = None) -> ScriptedEngine:
    """Speaks FRAMES frames of the tone for any text, `speed` frames a second."""
    return ScriptedEngine(speed=speed, waveform=tone, frames=lambda _: FRAMES)


@asynccontextmanager
async def serving(engine: ScriptedEngine, port: int = 0, settings: Settings | None = None) -> AsyncIterator[int]:
    """The gateway; yields its port."""
    async with running(engine, settings, port) as gateway:
        yield gateway.port


@dataclass
class Browsing:
    """A page that was loaded, and what went wrong in it."""

    page: Page
    problems: list[str]
    requests: list[str]

    async def text(self, name: str) -> str:
        """What the page shows at `data-view=name`."""
        return await self.page.locator(f"[data-view={name}]").inner_text()

    async def until(self, expression: str, timeout_s: float = 20) -> None:
        """Wait until a JavaScript expression holds; it is looked at by a timer of the test, not by frames."""
        await self.page.wait_for_function(expression, timeout=timeout_s * 1000, polling=20)

    async def until_shown(self, name: str, text: str) -> None:
        """Wait until the page shows `text` somewhere in `data-view=name`."""
        await self.until(f"document.querySelector('[data-view={name}]').textContent.includes({json.dumps(text)})")

    async def recorded(self) -> np.ndarray:
        """All samples that went to the loudspeaker so far, float32."""
        encoded = await self.page.evaluate(
            """async () => {
                const reader = new FileReader();
                reader.readAsDataURL(new Blob(recording.blocks));
                await new Promise((done) => (reader.onload = done));
                return reader.result.split(',')[1] ?? '';
            }"""
        )
        return np.frombuffer(base64.b64decode(encoded), np.float32)

    async def until_recorded(self, more_s: float) -> None:
        """Wait until so much more went to the loudspeaker, silence included."""
        frames = await self.page.evaluate("recording.frames")
        await self.until(f"recording.frames >= {frames} + {more_s} * recording.rate")

    async def until_heard(self, seconds: float) -> None:
        """Wait until the loudspeaker has had so much sound."""
        loud = "recording.blocks.filter((block) => block.some((x) => x !== 0))"
        await self.until(f"{loud}.length * 1024 >= {seconds} * recording.rate")


def find_browser() -> str | None:
    """Path of an installed Chromium."""
    return next(filter(None, map(shutil.which, _BROWSERS)), None)


@asynccontextmanager
async def launched(*arguments: str) -> AsyncIterator[Page]:
    """An empty page of a browser of its own; further `arguments` are the browser's."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), args=[*_ARGUMENTS, *arguments])
        try:
            yield await browser.new_page()
        finally:
            await browser.close()


@asynccontextmanager
async def browsing(
    port: int,
    rate: int = NATIVE_RATE,
    frozen_frames: bool = False,
    late_audio: bool = False,
    script: str = "",
    fragment: str = "",
    arguments: tuple[str, ...] = (),
) -> AsyncIterator[Browsing]:
    """Open the page on a device of that `rate`; `script` runs before the page's own, for the others see recorder.js.

    `arguments` are the browser's.
    """
    options = {"rate": rate, "frozenFrames": frozen_frames, "lateAudio": late_audio}
    async with launched(*arguments) as page:
        opened = Browsing(page, [], [])
        page.on("pageerror", lambda error: opened.problems.append(str(error)))
        page.on("console", lambda line: line.type in ("error", "warning") and opened.problems.append(line.text))
        page.on("request", lambda request: opened.requests.append(request.url))
        await page.add_init_script(f"window.testOptions = {json.dumps(options)};\n{_RECORDER}\n{script}")
        await page.goto(f"http://127.0.0.1:{port}/{fragment}")
        yield opened
