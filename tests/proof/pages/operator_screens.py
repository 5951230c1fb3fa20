"""Draws docs/operators.md's pictures: `python -m tests.proof.pages.operator_screens FOLDER`."""

import io
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from tests.conftest import Payer
from tests.proof.pages.browser import Browser, Shop, open_browser
from tests.proof.pages.operator_desk import log_in, open_desk

# Unused transfers, in units of 10⁻⁶ USDC.
_STRAY_UNITS = (250_000, 500)
_WIDE, _PHONE = 1280, 500


class Shot(NamedTuple):
    """One screenshot: of a page, or of the result of a button."""

    name: str
    path: str
    width: int
    height: int
    is_dark: bool = False
    # The selector of the button to press first.
    pressed: str = ""


_APPROVE = "button[value^='approve:']"
_FAILED = "/admin/tasks?state=failed"
_A_TASK = "th a[href^='/admin/tasks/']"
SHOTS = (
    Shot("overview-wide", "/admin?range=24h", _WIDE, 1560),
    Shot("overview-dark", "/admin?range=24h", _WIDE, 1560, is_dark=True),
    Shot("overview-phone", "/admin?range=24h", _PHONE, 2300),
    Shot("refunds-wide", "/admin/refunds", _WIDE, 760),
    Shot("refund-phone", "/admin/refunds", _PHONE, 900, is_dark=True, pressed=_APPROVE),
    Shot("task-wide", _FAILED, _WIDE, 900, pressed=_A_TASK),
    Shot("payments-wide", "/admin/payments", _WIDE, 620),
    Shot("endpoints-wide", "/admin/endpoints", _WIDE, 900),
    Shot("endpoints-phone", "/admin/endpoints", _PHONE, 1300, is_dark=True),
    Shot("books-wide", "/admin/books", _WIDE, 1000),
    Shot("system-wide", "/admin/system", _WIDE, 1300, is_dark=True),
    Shot("alarms-phone", "/admin/alarms", _PHONE, 900),
    Shot("access-phone", "/admin/access", _PHONE, 1100, is_dark=True),
)


def main(folder: Path) -> None:
    """Open the operator's pages with a month of sales, and take the screenshots."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as elsewhere,
        open_desk(Path(elsewhere), backup_url=_make_folder(Path(elsewhere))) as shop,
        open_browser() as browser,
    ):
        buyer = Payer(shop.chain)
        for units in _STRAY_UNITS:
            buyer.transfer(units, to=shop.place.wallet)
        log_in(browser, shop)
        # The vendor's refusal takes it off sale at the first probe.
        browser.until("document.querySelector('.needs .bad')")
        _wait_for(browser, shop, "/admin/payments", f"{_STRAY_UNITS[0] / 10**6:.2f}")
        _wait_for(browser, shop, "/admin/alarms", "Mute")
        for shot in SHOTS:
            _draw(browser, shop, folder, shot)


def _make_folder(parent: Path) -> str:
    folder = parent / "copies"
    folder.mkdir()
    return f"file://{folder}"


def _wait_for(browser: Browser, shop: Shop, path: str, words: str) -> None:
    """Reload a page until it shows data that the gateway reads in the background."""
    while True:
        browser.visit(f"{shop.base_url}{path}")
        browser.find("main h1")
        if words in browser.text("main"):
            return
        time.sleep(1)


def _draw(browser: Browser, shop: Shop, folder: Path, shot: Shot) -> None:
    browser.reset()
    browser.resize(shot.width, shot.height)
    if shot.is_dark:
        browser.darken()
    browser.visit(f"{shop.base_url}{shot.path}")
    if shot.pressed:
        browser.click(shot.pressed)
        browser.find("#timeline, .ask")
    _keep(browser, folder / f"operators-{shot.name}.png")


def _keep(browser: Browser, path: Path) -> None:
    picture = Image.open(io.BytesIO(browser.driver.get_screenshot_as_png())).convert("RGB")
    # With few colours a page compresses to a third, and looks the same.
    picture.quantize(256, method=Image.Quantize.FASTOCTREE).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
