"""A person in a browser has a picture edited: it is shown before it is sent, and after."""

from pathlib import Path

from PIL import Image

from tests.proof.pages.browser import Browser

EDIT = "/play/sandbox-image-edit"
EDIT_PRICE = 30_000  # units


def buy(browser: Browser) -> str:
    """Ask for the price, pay with the pages' wallet, and return the final text."""
    browser.click("#ask")
    browser.click("[data-wallet=purse]")
    browser.click("#pay")
    browser.find("#again")
    return browser.text("#flow")


def test_the_sample_picture_is_shown_edited_and_shown_again(shop, browser):
    before = shop.payments_of(shop.purse)
    browser.open(shop.base_url + EDIT)
    browser.click("#sample")
    assert browser.until("document.querySelector('#preview img')?.naturalWidth") == 896
    # Large enough to be recognised, and not a thumbnail.
    assert browser.find("#preview img").size["width"] > 200
    assert "sample.webp" in browser.text("#preview")
    browser.click("#ideas button")
    assert "0.03 play USDC" in buy(browser)
    assert browser.until("document.querySelector('.bought img')?.naturalWidth") > 850
    assert shop.payments_of(shop.purse) == [*before, EDIT_PRICE]
    # It is framed, so that it has another shape than the one that was sent.
    assert browser.run("return document.querySelector('.pair')") is None
    assert browser.complaints() == []


def test_a_picture_that_is_refused_is_told_in_the_gateways_words(shop, browser, tmp_path: Path):
    small = tmp_path / "small.png"
    Image.new("RGB", (20, 90)).save(small)
    browser.open(shop.base_url + EDIT)
    browser.find("#field-prompt").send_keys("winter")
    browser.click("#ask")
    browser.until("document.querySelector('#form-error').innerText")
    assert browser.text("#form-error") == "Choose a picture first."
    browser.driver.find_element("id", "file").send_keys(str(small))
    browser.click("#ask")
    browser.until("document.querySelector('#form-error').innerText.includes('pixels')")
    wanted = "The picture has 20 x 90 pixels; each side needs 64 or more."
    assert wanted in browser.text("#form-error")
