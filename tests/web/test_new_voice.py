"""A voice of one's own in the page: from the microphone, from a file, and what is wrong with it."""

from __future__ import annotations

import pytest
from page_browser import browsing, find_browser, serving, tone_engine
from recordings import speech, wav

from gateway.keys import ApiKeys
from gateway.settings import Settings

pytestmark = pytest.mark.skipif(find_browser() is None, reason="Chromium, which these tests drive, is not installed")


async def fill(page, name: str) -> None:
    await page.fill("#new-voice [name=name]", name)
    await page.fill("#new-voice [name=ref_text]", "What was said.")
    await page.check("#new-voice [name=consent]")


async def test_the_microphone_makes_a_voice_that_speaks_the_next_text(tmp_path):
    engine, voice = tone_engine(speed=200), tmp_path / "voice.wav"
    voice.write_bytes(wav(speech()))
    microphone = (
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",  # leave is given without a question
        f"--use-file-for-fake-audio-capture={voice}",
    )
    async with serving(engine) as port, browsing(port, arguments=microphone) as opened:
        await opened.until_shown("status", "Ready")
        page = opened.page
        await page.click("summary")
        record = page.locator("#new-voice [name=record]")
        await record.click()
        await opened.until("document.querySelector('#new-voice [name=record]').textContent === 'Stop recording'")
        await page.wait_for_timeout(2500)  # so long is the recording
        await record.click()
        await opened.until_shown("voice-result", "Recorded")
        await fill(page, "me")
        await page.click("#new-voice [name=add]")
        await opened.until_shown("voice-result", "me speaks the next text")
        assert await page.input_value("#voice") == "me"
        assert 1.5 * 44100 < engine.encoded[0] < 5 * 44100
        await page.locator("#text").focus()
        await page.keyboard.insert_text("Hello there.")
        await page.keyboard.press("Enter")
        await opened.until_shown("turns", "spoken")
        assert engine.submitted[-1].reference.text == "What was said."
        assert opened.problems == []


async def test_a_file_is_told_what_is_wrong_with_it_and_a_good_one_is_added():
    engine = tone_engine()
    settings = Settings(keys=ApiKeys({"alice": "secret"}))
    async with serving(engine, settings=settings) as port, browsing(port, fragment="#key=secret") as opened:
        await opened.until_shown("status", "Ready")
        page = opened.page
        await page.click("summary")
        await fill(page, "me")
        for content, told in ((wav(speech()[:20000]), "0.45 s long"), (wav(speech()), "me speaks the next text")):
            file = {"name": "me.wav", "mimeType": "audio/wav", "buffer": content}
            await page.set_input_files("#new-voice [name=audio_sample]", file)
            await page.click("#new-voice [name=add]")
            await opened.until_shown("voice-result", told)
        assert await page.input_value("#voice") == "me"
        assert await page.locator("#voice option").all_inner_texts() == [
            "ada (en)", "bo (de)", "me (en)", "None: the model chooses"
        ]  # fmt: skip
        await page.reload()
        await opened.until_shown("status", "Ready")
        assert "me (en)" in await page.locator("#voice option").all_inner_texts()
