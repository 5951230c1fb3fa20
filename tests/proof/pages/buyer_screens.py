"""Draws each buyers' page for a reviewer: `python -m tests.proof.pages.buyer_screens FOLDER`."""

import base64
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from eth_account import Account

from gateway.domain.eip3009 import BASE_SEPOLIA
from tests.proof.pages.browser import Browser, Shop, open_browser, open_gateway, open_shop
from tests.proof.pages.conftest import FAILS
from tests.proof.pages.purchases import DOCUMENT, PICTURE, ask, choose_purse, finish
from tests.proof.process.gateway_process import install_plugin

SCREENS = ("light", "dark", "phone")
FAILURE = "/play/fails-on-purpose"
# A vendor that has not finished.
_IN_WORK = """
if (!String(path).startsWith("/api/task/")) return send();
const task = await (await send()).json();
await new Promise((resolve) => setTimeout(resolve, 300));
return Response.json({...task, status: "processing", done: false, progress: 0.4, result: null});
"""


@attrs.define
class Shops:
    """Shops of 1, 5 and 50 offers for play money, the demo's, and two of 4 for real money.

    The last one has no gas and no refund key.
    """

    one: Shop
    play: Shop
    many: Shop
    demo: Shop
    real: Shop
    poor: Shop


@contextlib.contextmanager
def open_shops(folder: Path) -> Iterator[Shops]:
    """Open the shops on two chains."""
    site = folder / "site"
    site.mkdir()
    install_plugin(site, "gateway_fails", FAILS)
    names = ("one", "play", "many", "demo", "real", "poor")
    places = {name: folder / name for name in names}
    for place in places.values():
        place.mkdir()
    public = {"base_url": "https://shop.example.com", "webhooks": "off", "play_key": ""}
    with contextlib.ExitStack() as stack:
        play = stack.enter_context(open_shop(places["play"]))
        chain = play.chain
        one = stack.enter_context(open_gateway(places["one"], chain, sandbox="false"))
        real = stack.enter_context(open_gateway(places["real"], chain, **public))
        nothing = {"settlement_key": Account.create().key.hex(), "refund_key": ""}
        poor = stack.enter_context(open_gateway(places["poor"], chain, **public, **nothing))
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(site))
            facts = {"host": "localhost", "contact_email": "me@example.com"}
            many = stack.enter_context(open_gateway(places["many"], chain, **facts))
        demo = stack.enter_context(open_shop(places["demo"], chain_id=BASE_SEPOLIA.chain_id))
        yield Shops(one=one, play=play, many=many, demo=demo, real=real, poor=poor)


@attrs.define
class Gallery:
    """The pictures of one kind of screen."""

    browser: Browser
    folder: Path
    screen: str

    def begin(self) -> None:
        """Undo the changes of a walk, and set the screen."""
        self.browser.reset()
        self.browser.resize(390 if self.screen == "phone" else 1280, 860)
        if self.screen == "dark":
            self.browser.darken()

    def keep(self, name: str) -> None:
        """Take a picture of the whole page."""
        self.browser.run("for (const one of document.images) one.loading = 'eager'")
        self.browser.until("[...document.images].every((one) => one.complete)")
        self.browser.run("scrollTo(0, 0)")
        shot = self.browser.cdp("Page.captureScreenshot", captureBeyondViewport=True)
        (self.folder / f"{name}-{self.screen}.png").write_bytes(base64.b64decode(shot["data"]))

    def visit(self, name: str, url: str) -> None:
        """Keep a page as a new visitor sees it."""
        self.browser.open(url)
        self.browser.until("document.querySelector('.state.live')")
        self.keep(name)


def main(folder: Path, screens: list[str]) -> None:
    """Walk through all shops on each kind of screen."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as elsewhere,
        open_shops(Path(elsewhere)) as shops,
        open_browser() as browser,
    ):
        for screen in screens:
            gallery = Gallery(browser, folder, screen)
            for walk in (
                draw_pages,
                draw_what_is_missing,
                draw_ways_to_pay,
                draw_purchase,
                draw_files,
                draw_failure,
            ):
                gallery.begin()
                walk(gallery, shops)


def draw_pages(gallery: Gallery, shops: Shops) -> None:
    """Front pages and forms."""
    gallery.visit("front-1", shops.one.base_url)
    gallery.visit("front-4", shops.real.base_url)
    gallery.visit("front-5-demo", shops.demo.base_url)
    gallery.visit("front-many", shops.many.base_url)
    gallery.visit("form-picture", shops.play.base_url + PICTURE)
    gallery.visit("form-edit", f"{shops.play.base_url}/play/sandbox-image-edit")
    gallery.visit("form-extract", f"{shops.play.base_url}/play/sandbox-extract")
    gallery.visit("form-document", shops.play.base_url + DOCUMENT)
    gallery.visit("form-vendor", f"{shops.many.base_url}/play/offer-0")
    gallery.visit("form-link", f"{shops.play.base_url}{PICTURE}?prompt=a+boat&aspect_ratio=16:9")
    gallery.visit("purchases-none", f"{shops.play.base_url}/purchases")
    gallery.visit("unknown", f"{shops.play.base_url}/play/nothing")


def draw_what_is_missing(gallery: Gallery, shops: Shops) -> None:
    """A gateway without gas, which refunds nothing."""
    browser, base_url = gallery.browser, shops.poor.base_url
    browser.open(base_url)
    # The first check of the key may come after the first page.
    while "Wallets cannot sign" not in browser.text(".hero"):
        time.sleep(0.5)
        browser.reload()
    gallery.keep("front-no-gas")
    gallery.visit("form-no-gas", base_url + PICTURE)


def draw_ways_to_pay(gallery: Gallery, shops: Shops) -> None:
    """Pay without a browser wallet: links, QR code, Base Account."""
    browser = gallery.browser
    browser.open(shops.real.base_url + PICTURE)
    ask(browser)
    browser.find("[data-wallet=transfer]")
    gallery.keep("ways-to-pay")
    browser.click("[data-wallet=base-account]")
    browser.until("!document.querySelector('#open-account').disabled")
    gallery.keep("base-account")
    browser.click("#flow .tools button")
    browser.click("[data-wallet=transfer]")
    browser.find(".qr")
    gallery.keep("qr-code")
    browser.click("#flow .tools button")
    gallery.keep("leave-transfer")


def draw_purchase(gallery: Gallery, shops: Shops) -> None:
    """Buy a picture, see it in work and done, and on its own page."""
    browser, shop = gallery.browser, shops.demo
    browser.announce_wallets("0x" + "11" * 20)
    browser.open(shop.base_url + PICTURE)
    ask(browser, "a mountain lake in the evening, one small boat")
    browser.find("[data-wallet='test.owl']")
    gallery.keep("wallets")
    choose_purse(browser)
    gallery.keep("review")
    browser.click("#pay")
    finish(browser)
    browser.until("document.querySelector('.bought img').naturalWidth")
    gallery.keep("done")
    browser.click(".tools a[href^='/task/']")
    browser.find(".bought img")
    gallery.keep("task-done")
    browser.between(_IN_WORK)
    browser.reload()
    browser.until("document.querySelector('progress')?.value")
    gallery.keep("task-in-work")
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    choose_purse(browser)
    browser.click("#pay")
    browser.until("document.querySelector('progress')?.value")
    gallery.keep("in-work")


def draw_files(gallery: Gallery, shops: Shops) -> None:
    """Buy a document's text, its data, and an edited picture."""
    browser, shop = gallery.browser, shops.demo
    kinds = (
        ("document", DOCUMENT),
        ("data", "/play/sandbox-extract"),
        ("edit", "/play/sandbox-image-edit"),
    )
    for name, path in kinds:
        browser.open(shop.base_url + path)
        browser.click("#sample")
        browser.find("#preview .file")
        if name != "document":
            browser.click("#ideas button")
        gallery.keep(f"form-{name}-filled")
        browser.click("#ask")
        choose_purse(browser)
        browser.click("#pay")
        finish(browser)
        gallery.keep(f"done-{name}")


def draw_failure(gallery: Gallery, shops: Shops) -> None:
    """Buy a failure, watch its refund, and list the purchases."""
    browser, shop = gallery.browser, shops.demo
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    choose_purse(browser)
    browser.click("#pay")
    finish(browser)
    browser.visit(shop.base_url + FAILURE)
    ask(browser)
    choose_purse(browser)
    browser.click("#pay")
    finish(browser)
    gallery.keep("failed")
    browser.until("document.querySelector('.receipt').innerText.includes('was sent back')")
    gallery.keep("refunded")
    browser.click(".tools a[href^='/task/']")
    browser.find("#about .receipt")
    browser.until("document.querySelector('#flow .bad')")
    gallery.keep("task-refunded")
    browser.visit(f"{shop.base_url}/purchases")
    browser.until("document.querySelectorAll('.purchases .tag').length === 2")
    gallery.keep("purchases")
    browser.click(".purchases .tools button")
    browser.find("dialog")
    gallery.keep("forget")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or list(SCREENS))
