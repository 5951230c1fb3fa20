"""A person in a browser buys from real models: by one click on a sample, and sees or hears it."""

from importlib.util import find_spec

import pytest
from selenium.webdriver.common.keys import Keys

from tests.proof.pages.browser import Browser
from tests.proof.pages.test_edit_by_click import buy

pytestmark = pytest.mark.skipif(
    find_spec("generation_gateway_models") is None, reason="make models installs the weights"
)
CLIP = "return getComputedStyle(document.querySelector('.pair .before')).clipPath"
LENGTH = "Math.round(document.querySelector('.bought audio')?.duration || 0)"


def buy_with_sample(browser: Browser, address: str) -> str:
    browser.open(address)
    browser.click("#sample")
    browser.until("document.querySelector('#preview .file')")
    return buy(browser)


@pytest.mark.parametrize(("slug", "width"), [("background-removal", 300), ("image-upscaling", 600)])
def test_a_picture_is_compared_with_the_one_that_was_sent(shop, browser, slug, width):
    buy_with_sample(browser, f"{shop.base_url}/play/{slug}")
    assert browser.until("document.querySelector('.bought img')?.naturalWidth") == width
    assert browser.until("document.querySelector('.pair .before')?.naturalWidth") == 300
    places = [browser.run(CLIP)]
    browser.find(".pair + input").send_keys(Keys.END)
    places.append(browser.run(CLIP))
    assert places == ["inset(0px 50% 0px 0px)", "inset(0px 0% 0px 0px)"]
    assert browser.complaints() == []


def test_speech_is_played_and_a_recording_is_shown_as_text(shop, browser):
    browser.open(f"{shop.base_url}/play/text-to-speech")
    browser.click("#ideas button")
    buy(browser)
    assert 3 <= browser.until(LENGTH) <= 8
    text = buy_with_sample(browser, f"{shop.base_url}/play/speech-to-text")
    assert "The harbor was quiet." in text.replace("harbour", "harbor")
    assert "Copy text" in text
    assert browser.complaints() == []


def test_a_recording_is_cleaned_and_played(shop, browser):
    buy_with_sample(browser, f"{shop.base_url}/play/speech-cleanup")
    assert browser.until(LENGTH) == 5
    assert browser.complaints() == []
