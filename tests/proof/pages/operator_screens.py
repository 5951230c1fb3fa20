"""Draws docs/operators.md's pictures: `python -m tests.proof.pages.operator_screens FOLDER`."""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.proof.pages.browser import Browser, open_browser
from tests.proof.pages.operator_desk import log_in, open_desk

# Name, path, width, height, and whether it is dark.
SHOTS = (
    ("overview-wide", "/admin?range=24h", 1280, 1560, False),
    ("overview-dark", "/admin?range=24h", 1280, 1560, True),
    ("overview-phone", "/admin?range=24h", 500, 2300, False),
    ("endpoints-wide", "/admin/endpoints", 1280, 900, False),
    ("endpoints-phone", "/admin/endpoints", 500, 1500, True),
)


def main(folder: Path) -> None:
    """Open a desk with a month of sales, and keep what the browser shows of it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as elsewhere,
        open_desk(Path(elsewhere)) as shop,
        open_browser() as browser,
    ):
        log_in(browser, shop)
        # The vendor's refusal takes it off sale at the first probe.
        browser.until("document.querySelector('.needs .bad')")
        for name, path, width, height, is_dark in SHOTS:
            browser.reset()
            browser.resize(width, height)
            if is_dark:
                browser.darken()
            browser.driver.get(f"{shop.base_url}{path}")
            _keep(browser, folder / f"operators-{name}.png")


def _keep(browser: Browser, path: Path) -> None:
    picture = Image.open(io.BytesIO(browser.driver.get_screenshot_as_png())).convert("RGB")
    # Few colours: a page compresses to a third, and looks the same.
    picture.quantize(256, method=Image.Quantize.FASTOCTREE).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
