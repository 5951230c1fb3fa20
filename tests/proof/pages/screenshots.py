"""Draws the README's pictures of the pages: `python -m tests.proof.pages.screenshots FOLDER`."""

import io
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

from tests.proof.pages.browser import Browser, Shop, open_browser, open_shop

PROMPT = "a mountain lake in the evening, one small boat"


def main(folder: Path) -> None:
    """Buy a picture, and take screenshots on the way."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as elsewhere,
        open_shop(Path(elsewhere)) as shop,
        open_browser() as browser,
    ):
        browser.resize(1280, 860)
        browser.open(shop.base_url)
        # The gateway promises automatic refunds once it has read the balance of its refund key.
        while "automatically" not in browser.text(".hero"):
            time.sleep(0.5)
            browser.reload()
        _keep(browser, folder / "page-light.webp")
        browser.darken()
        _buy(browser, shop)
        _keep(browser, folder / "page-dark.webp")
        browser.reset()
        browser.resize(400, 860)
        browser.open(shop.base_url)
        _keep(browser, folder / "page-phone.webp")


def _buy(browser: Browser, shop: Shop) -> None:
    browser.open(f"{shop.base_url}/play/sandbox-image")
    browser.find("#field-prompt").send_keys(PROMPT)
    browser.click("label[for=aspect_ratio-2]")
    browser.click("#ask")
    browser.click("[data-wallet=purse]")
    browser.click("#pay")
    browser.find("#again")
    browser.until("document.querySelector('.bought img').naturalWidth")
    browser.run("scrollTo(0, 0)")


def _keep(browser: Browser, path: Path) -> None:
    # The badge turns live, and pictures are decoded.
    browser.until("document.querySelector('.state.live')")
    browser.until("[...document.images].every((one) => one.complete)")
    picture = Image.open(io.BytesIO(browser.driver.get_screenshot_as_png())).convert("RGB")
    picture.save(path, quality=82, method=6)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
