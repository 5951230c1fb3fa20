"""axe-core finds nothing on any step of the buyers' pages: light, dark, and on a phone."""

import pytest

from tests.proof.pages.browser import PATIENCE_S, Browser
from tests.proof.pages.purchases import DOCUMENT, PICTURE, ask, choose_purse, finish

# A new page for buyers belongs here.
SHOP_PAGES = [
    "/",
    PICTURE,
    "/play/sandbox-image-edit",
    DOCUMENT,
    "/play/sandbox-extract",
    "/purchases",
    "/play/nothing",
]
OTHER_PAGES = ["/", "/play/offer-1", "/play/offer-2"]
LEAST_CODE_PX = 13
_RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then(
  ({violations}) => done(violations.flatMap(({id, nodes}) => nodes.map(
    ({html, failureSummary}) => `${id}: ${html}: ${failureSummary}`))),
  (error) => done([String(error)]),
);
"""
_SMALL_CODE = """
return [...document.querySelectorAll("code, pre, kbd, samp, .rows :first-child")]
  .filter((one) => one.checkVisibility() && one.textContent.trim())
  .filter((one) => parseFloat(getComputedStyle(one).fontSize) < arguments[0])
  .map((one) => `${getComputedStyle(one).fontSize}: ${one.outerHTML.slice(0, 200)}`);
"""


# A phone shows the same elements in one column; `make long-proofs` asks axe there.
@pytest.fixture(params=["light", "dark", pytest.param("phone", marks=pytest.mark.full)])
def look(request, browser) -> Browser:
    if request.param == "dark":
        browser.darken()
    browser.resize(390 if request.param == "phone" else 1280)
    return browser


def check(browser: Browser, axe: str, step: str) -> None:
    """Assert that axe reports nothing, and that code is large enough."""
    browser.driver.set_script_timeout(PATIENCE_S)
    if not browser.run("return 'axe' in window"):
        browser.run(axe)
    assert browser.driver.execute_async_script(_RUN) == [], step
    assert browser.run(_SMALL_CODE, LEAST_CODE_PX) == [], step


def test_every_page_of_a_shop(shop, other_shop, lone_shop, look, axe):
    pages = [(shop, path) for path in SHOP_PAGES] + [(other_shop, path) for path in OTHER_PAGES]
    for place, path in [*pages, (lone_shop, "/")]:
        look.open(place.base_url + path)
        look.until("document.querySelector('.state.live')")
        check(look, axe, path)


def test_every_step_of_a_purchase(shop, look, axe):
    look.announce_wallets(shop.purse)
    look.open(shop.base_url + PICTURE)
    ask(look)
    look.find("[data-wallet=purse]")
    check(look, axe, "the wallets")
    choose_purse(look)
    check(look, axe, "what is signed")
    look.click("#pay")
    finish(look)
    check(look, axe, "the picture")
    look.visit(shop.base_url + "/purchases")
    look.find(".purchases .tag")
    check(look, axe, "the purchases")
    look.click(".purchases .button")
    look.find(".bought img")
    check(look, axe, "the page of the task")


def test_a_document_and_a_failure(shop, other_shop, look, axe):
    look.open(shop.base_url + DOCUMENT)
    look.click("#ask")
    look.until("document.querySelector('#form-error').innerText")
    check(look, axe, "what is missing")
    look.click("#sample")
    look.find("#preview pre")
    check(look, axe, "the file")
    look.click("#ask")
    choose_purse(look)
    look.click("#pay")
    finish(look)
    check(look, axe, "the document")
    look.open(f"{other_shop.base_url}/play/fails")
    ask(look)
    choose_purse(look)
    look.click("#pay")
    finish(look)
    check(look, axe, "the failure")
