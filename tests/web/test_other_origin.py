"""The client in a page of another origin: it imports the modules from the gateway, and speaks if it may connect."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from aiohttp import web
from page_browser import FRAMES, find_browser, launched, serving, tone_engine
from playwright.async_api import Page
from scripted_engine import FRAME_SAMPLES

from gateway.settings import Settings

pytestmark = pytest.mark.skipif(find_browser() is None, reason="Chromium, which these tests drive, is not installed")

HOST = "app.example"
SCRIPT = """
    import { SpeechClient } from '%(gateway)s/web/client.js';
    import { say } from '%(gateway)s/web/say.js';
    const told = { states: [], samples: 0, text: '' };
    const client = new SpeechClient('%(gateway)s/v1/stream'.replace('http', 'ws'), {
        onStatus: ({ state }) => told.states.push(state),
    });
    client.connect();
    const turn = say(client, ['Two words. ', 'And three more.'], { voice: 'bo' });
    window.told = told;
    for await (const { samples, start } of turn) {
        if (start !== told.samples) throw new Error(`sample ${start} where ${told.samples} was due`);
        told.samples += samples.length;
    }
    told.text = turn.heard().textSpoken;
    told.end = (await turn.ended).reason;
"""


@dataclass
class Elsewhere:
    """A web server of another origin.  Its page's only part on the gateway is what it imports."""

    origin: str
    html: str = ""

    @asynccontextmanager
    async def opened(self, gateway_port: int) -> AsyncIterator[Page]:
        """Its page in a browser that finds `HOST` on this machine."""
        self.html = f"<script type=module>{SCRIPT % {'gateway': f'http://127.0.0.1:{gateway_port}'}}</script>"
        async with launched(f"--host-resolver-rules=MAP {HOST} 127.0.0.1") as page:
            await page.goto(self.origin)
            yield page


@pytest.fixture
async def elsewhere() -> AsyncIterator[Elsewhere]:
    """The other server; what is asked of it is answered with its page."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=site.html, content_type="text/html")

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    site = Elsewhere(f"http://{HOST}:{runner.addresses[0][1]}")
    yield site
    await runner.cleanup()


async def test_a_page_that_is_allowed_speaks(elsewhere: Elsewhere):
    engine = tone_engine()
    settings = Settings(allowed_origins=(elsewhere.origin,))
    async with serving(engine, settings=settings) as port, elsewhere.opened(port) as page:
        await page.wait_for_function("window.told?.end", timeout=20000)
        told = json.loads(await page.evaluate("JSON.stringify(told)"))
    assert (told["end"], told["text"]) == ("done", "Two words. And three more.")
    assert told["samples"] == len(engine.submitted) * FRAMES * FRAME_SAMPLES
    assert {request.voice for request in engine.submitted} == {"bo"}


async def test_a_page_that_is_not_may_import_but_does_not_speak(elsewhere: Elsewhere):
    engine = tone_engine()
    async with serving(engine) as port, elsewhere.opened(port) as page:
        await page.wait_for_function("window.told?.states.includes('waiting')", timeout=20000)
    assert not engine.submitted
