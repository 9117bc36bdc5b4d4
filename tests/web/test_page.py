"""The page as a person meets it: types, hears, stops, and goes on.  What is heard is what the loudspeaker is given."""

from __future__ import annotations

import numpy as np
import pytest
from page_browser import FRAMES, NATIVE_RATE, TONE_HZ, TONE_LEVEL, browsing, find_browser, serving, tone_engine
from scripted_engine import FRAME_SAMPLES

from gateway.keys import ApiKeys
from gateway.settings import Settings

pytestmark = pytest.mark.skipif(find_browser() is None, reason="Chromium, which these tests drive, is not installed")

RATES = (44100, 48000)
FADE_S = 0.005
SILENT = TONE_LEVEL / 1000  # -60 dB
SENTENCES = "This is the first sentence of it. This is the second one of them. And this is the last one here."


def sounding(samples: np.ndarray) -> np.ndarray:
    """From the first sample that is not silent to the last one."""
    (loud,) = np.nonzero(np.abs(samples) > 1e-6)
    assert loud.size, "nothing was heard"
    return samples[loud[0] : loud[-1] + 1]


def largest_step(rate: int) -> float:
    """Of the tone itself, with a ramp on it, and the 16 bits of the wire."""
    return TONE_LEVEL * 2 * np.pi * TONE_HZ / rate + TONE_LEVEL / (FADE_S * rate) + 2 / 32768


def deviation(samples: np.ndarray, rate: int) -> float:
    """The largest distance from the one tone, of a constant phase, that fits best: steps, gaps and drift show in it."""
    angle = 2 * np.pi * TONE_HZ / rate * np.arange(samples.size)
    basis = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    fit, *_ = np.linalg.lstsq(basis, samples, rcond=None)
    assert np.hypot(*fit) == pytest.approx(TONE_LEVEL, rel=0.01)
    return float(np.abs(basis @ fit - samples).max())


def expected_length(segments: int, rate: int) -> int:
    """Samples that so many segments take on the device."""
    return round(segments * FRAMES * FRAME_SAMPLES * rate / NATIVE_RATE)


@pytest.mark.parametrize(("rate", "hidden"), [(44100, False), (48000, False), (48000, True)])
async def test_a_pasted_text_is_heard_whole_and_without_a_step(rate: int, hidden: bool):
    engine = tone_engine(speed=200)
    async with serving(engine) as port, browsing(port, rate, frozen_frames=hidden) as opened:
        await opened.until_shown("status", "Ready")
        await opened.page.locator("#text").focus()
        await opened.page.keyboard.insert_text(SENTENCES)
        await opened.page.keyboard.press("Enter")
        await opened.until_shown("turns", "spoken")
        await opened.until_recorded(0.1)
        heard = sounding(await opened.recorded())
        assert abs(heard.size - expected_length(len(engine.submitted), rate)) <= 4  # the ramps' first and last are zero
        fade = round(2 * FADE_S * rate)
        assert deviation(heard[fade:-fade], rate) < 2e-3
        assert np.abs(np.diff(heard)).max() < largest_step(rate)
        assert "".join(request.text for request in engine.submitted).replace(" ", "") == SENTENCES.replace(" ", "")
        assert opened.problems == []
        assert all(url.startswith((f"http://127.0.0.1:{port}/", "blob:", "data:")) for url in opened.requests)


@pytest.mark.parametrize("rate", RATES)
async def test_it_speaks_while_one_types(rate: int):
    engine = tone_engine(speed=200)
    async with serving(engine) as port, browsing(port, rate) as opened:
        await opened.until_shown("status", "Ready")
        await opened.page.locator("#text").press_sequentially("This is the first sentence of it. Then som", delay=5)
        await opened.until_heard(0.4)
        assert len(engine.submitted) == 1, "the word that is being written is not spoken"
        await opened.until("document.querySelector('#backdrop .heard')?.textContent.startsWith('This is')")
        await opened.until("document.querySelector('[data-view=buffer]').textContent === '0'")  # ran dry
        await opened.page.locator("#text").press_sequentially("ething else.", delay=5)
        await opened.page.keyboard.press("Enter")
        await opened.until_shown("turns", "spoken")
        await opened.until_recorded(0.1)
        spoken = [request.text.strip() for request in engine.submitted]
        assert spoken == ["This is the first sentence of it.", "Then something else."]
        heard = await opened.recorded()
        assert np.count_nonzero(heard) == pytest.approx(expected_length(2, rate), rel=0.01)
        assert np.abs(np.diff(heard)).max() < largest_step(rate)
        assert await opened.text("underruns") == "0", "to wait for the writer is no underrun"
        assert opened.problems == []


@pytest.mark.parametrize("rate", RATES)
async def test_stop_is_silence_and_the_next_text_is_whole(rate: int):
    engine = tone_engine()
    async with serving(engine) as port, browsing(port, rate, late_audio=True) as opened:
        await opened.until_shown("status", "Ready")
        await opened.page.locator("#text").focus()
        await opened.page.keyboard.insert_text("Here comes one more sentence to be stopped. " * 36)  # 20 s, at once
        await opened.until_heard(1.0)
        await opened.page.keyboard.press("Escape")
        await opened.until("window.lateMessages === 10")
        await opened.until_recorded(0.5)
        stopped = await opened.page.evaluate("recording.stoppedAt")
        before = await opened.recorded()
        assert np.abs(before[stopped + round(0.05 * rate) :]).max() < SILENT
        assert np.abs(np.diff(before)).max() < largest_step(rate)
        assert await opened.text("buffer") == "0"
        assert "stopped" in await opened.text("turns")

        engine.submitted.clear()
        await opened.page.keyboard.insert_text("The next one is whole.")
        await opened.page.keyboard.press("Enter")
        await opened.until_shown("turns", "spoken")
        await opened.until_recorded(0.1)
        heard = sounding((await opened.recorded())[before.size :])
        assert abs(heard.size - expected_length(len(engine.submitted), rate)) <= 4
        level = np.sqrt(np.mean(heard[: rate // 5] ** 2)) / (TONE_LEVEL / np.sqrt(2))
        assert abs(20 * np.log10(level)) < 1
        assert opened.problems == []


async def test_two_texts_at_once_are_spoken_one_after_the_other():
    engine = tone_engine()
    async with serving(engine) as port, browsing(port) as opened:
        await opened.until_shown("status", "Ready")
        await opened.page.locator("#text").focus()
        for text in ("The first of two.", "The second of two."):
            await opened.page.keyboard.insert_text(text)
            await opened.page.keyboard.press("Enter")
        await opened.until("document.querySelectorAll('.turn[data-state=spoken]').length === 2")
        await opened.until_recorded(0.1)
        heard = await opened.recorded()
        assert np.abs(heard).max() < TONE_LEVEL * 1.01, "never summed"
        assert np.count_nonzero(np.abs(heard) > 1e-6) == pytest.approx(expected_length(2, NATIVE_RATE), rel=0.01)


async def test_without_a_gesture_it_asks_for_a_tap_and_then_starts_at_the_beginning():
    writes_by_itself = """
        addEventListener('DOMContentLoaded', () => new MutationObserver((_, observer) => {
            if (document.querySelector('[data-view=status]').textContent !== 'Ready') return;
            observer.disconnect();
            const field = document.querySelector('#text');
            field.value = 'Nobody has touched this page. ';
            field.dispatchEvent(new InputEvent('input', { inputType: 'insertText' }));
            document.querySelector('#speak').click();
        }).observe(document.querySelector('[data-view=status]'), { childList: true, attributes: true }));
        addEventListener('DOMContentLoaded', () => new MutationObserver(() => {
            if (!document.querySelector('.cover').hidden) console.info('asks for a tap');
        }).observe(document.querySelector('.cover'), { attributes: true }));
    """
    engine = tone_engine()
    async with serving(engine) as port, browsing(port, script=writes_by_itself) as opened:
        # Anything that looks into the page counts as a gesture there, so it tells by itself.
        async with opened.page.expect_console_message(lambda line: line.text == "asks for a tap", timeout=20000):
            pass
        await opened.page.get_by_role("button", name="Tap to hear").click()
        await opened.until_shown("turns", "spoken")
        await opened.until_recorded(0.1)
        assert sounding(await opened.recorded()).size == pytest.approx(expected_length(1, NATIVE_RATE), abs=4)
        assert await opened.page.locator(".cover").is_hidden()


async def test_what_was_sent_is_locked_and_the_rest_can_be_corrected():
    engine = tone_engine()
    async with serving(engine) as port, browsing(port) as opened:
        await opened.until_shown("status", "Ready")
        field = opened.page.locator("#text")
        await field.press_sequentially("One two thre")
        for key in ("Backspace", "Backspace", "Backspace", "Backspace"):
            await opened.page.keyboard.press(key)
        assert await field.input_value() == "One two "
        await opened.page.keyboard.press("Backspace")
        assert await field.input_value() == "One two "
        assert "cannot be unsaid" in await opened.text("notice")
        await opened.page.keyboard.press("Control+Home")
        await opened.page.keyboard.type("X")  # goes to the end
        await opened.page.keyboard.press("Control+a")
        await opened.page.keyboard.press("Delete")
        assert await field.input_value() == "One two X"
        await opened.page.keyboard.press("Control+Enter")
        await opened.until_heard(0.3)
        assert [request.text.strip() for request in engine.submitted] == ["One two X"]
        assert await field.input_value() == "One two X", "after a flush the text goes on"


async def test_it_types_like_a_language_model():
    engine = tone_engine()
    async with serving(engine) as port, browsing(port) as opened:
        await opened.until_shown("status", "Ready")
        await opened.page.locator("#script").fill("A text that is written by the page. It needs nobody.")
        await opened.page.locator("#speed").fill("100")
        await opened.page.get_by_role("button", name="Let it type").click()
        await opened.until_heard(0.1)
        await opened.until_shown("turns", "spoken")
        assert "".join(request.text for request in engine.submitted).endswith("It needs nobody.")
        assert await opened.text("auto") == "Let it type"

        await opened.page.get_by_role("button", name="Let it type").click()
        await opened.until("document.querySelector('#text').value.length > 20")
        await opened.page.keyboard.press("Escape")
        assert await opened.page.locator("#text").input_value() == "", "no half word is left to the user"
        assert await opened.page.locator("#text").is_editable()


async def test_voice_and_sampling_hold_for_the_next_text():
    engine = tone_engine()
    async with serving(engine) as port, browsing(port) as opened:
        await opened.until_shown("status", "Ready")
        page = opened.page
        await page.locator("#voice").select_option("bo")
        await page.locator("#temperature").fill("0.5")
        await page.locator("#top_p").fill("0.8")
        await page.locator("#top_k").fill("20")
        await page.locator("#seed").fill("7")
        await page.locator("#text").focus()
        await page.keyboard.insert_text("Said so.")
        await page.keyboard.press("Enter")
        await opened.until_shown("turns", "seed 7")
        (request,) = engine.submitted
        asked = request.sampling
        assert request.voice == "bo"
        assert (asked.temperature, asked.top_p, asked.top_k, asked.seed) == (0.5, 0.8, 20, 7)


async def test_a_gateway_that_fails_or_goes_is_told_and_comes_back():
    engine = tone_engine()
    async with serving(engine) as port, browsing(port) as opened:
        await opened.until_shown("status", "Ready")
        engine.chunk_gate.clear()
        await opened.page.locator("#text").focus()
        await opened.page.keyboard.insert_text("This one fails.")
        await opened.page.keyboard.press("Enter")
        await engine.until(lambda: bool(engine.live))
        engine.fail_all("scripted")
        await opened.until("document.querySelector('.turn[data-state=failed] .problem')?.textContent")
    # The gateway is gone now; the page of the next one stays open while it goes and returns.
    async with serving(tone_engine()) as port:
        page = browsing(port)
        opened = await page.__aenter__()
        await opened.until_shown("status", "Ready")
    try:
        await opened.until_shown("status", "Reconnecting")
        again = tone_engine()
        async with serving(again, port):
            await opened.until_shown("status", "Ready")
            await opened.page.locator("#text").focus()
            await opened.page.keyboard.insert_text("Back again.")
            await opened.page.keyboard.press("Enter")
            await opened.until_heard(0.3)
    finally:
        await page.__aexit__(None, None, None)


async def test_the_key_of_the_address_opens_a_gateway_that_wants_one():
    engine = tone_engine(speed=200)
    settings = Settings(keys=ApiKeys({"page": "a.key~of+the/page=="}))
    async with serving(engine, settings=settings) as port:
        async with browsing(port, fragment="#key=a.key~of+the/page==") as opened:
            await opened.until_shown("status", "Ready")
            assert not opened.problems
            assert not any("key" in request for request in opened.requests)
        for fragment, told in (("#key=another", "not valid"), ("", "wants an API key")):
            async with browsing(port, fragment=fragment) as opened:
                await opened.until_shown("status", "Reconnecting")
                await opened.until_shown("notice", told)
