"""Purchases that survive their tab, the page of a task, and links that fill the form."""

import io
import json

import pytest

from tests.proof.pages.browser import Browser, Shop
from tests.proof.pages.purchases import PICTURE, PRICE, ask, choose_purse, finish, has_picture

WORDS = 'Bär & "Co" + 50 %, 北'
_KEPT = "return Object.values(localStorage).map(JSON.parse)"
# A browser whose storage of the site is full.
_FULL = """
const set = Storage.prototype.setItem;
Storage.prototype.setItem = function (name, value) {
  if (this === localStorage) throw new DOMException("full", "QuotaExceededError");
  set.call(this, name, value);
};
"""
# A gateway that answers no payment, and later refuses each.
_SILENT = """
if (!payment) return send();
if (!sessionStorage.refuses) return new Promise(() => {});
return Response.json({error: "No.", charged: false}, {status: 402});
"""
_POSTS = """
window.posts = [];
const real = window.fetch;
window.fetch = (path, request) => {
  if (request?.method === "POST") window.posts.push(path);
  return real(path, request);
};
"""


def buy(shop: Shop, browser: Browser, path: str = PICTURE, prompt: str = "a boat") -> dict:
    """Buy by the purse, and return the browser's record of it."""
    browser.open(shop.base_url + path)
    ask(browser, prompt)
    choose_purse(browser)
    browser.click("#pay")
    finish(browser)
    (found,) = browser.run(_KEPT)
    return found


def close_tab(browser: Browser, url: str) -> None:
    """Open an address in a new tab: nothing of the old tab's own storage is left."""
    browser.run("sessionStorage.clear()")
    browser.visit(url)


# -- purchases


def test_a_purchase_without_an_answer_survives_its_tab_and_pays_once(shop, browser):
    before = shop.payments_of(shop.purse)
    browser.lose_first_answer()
    browser.open(shop.base_url + PICTURE)
    ask(browser, "a tab that was closed")
    choose_purse(browser)
    browser.click("#pay")
    browser.until("sessionStorage.lost")
    close_tab(browser, f"{shop.base_url}/purchases")
    browser.run("sessionStorage.lost = 'once'")
    assert "Not finished" in browser.find(".purchases").text
    browser.visit(shop.base_url + PICTURE)
    # Nothing is sent until the buyer wants it.
    assert "the gateway's answer is missing" in browser.find(".notes").text
    assert browser.find("#ask").is_enabled()
    browser.click("#continue")
    finish(browser)
    assert has_picture(browser)
    assert shop.payments_of(shop.purse) == [*before, PRICE]
    (kept,) = browser.run(_KEPT)
    assert (kept["status"], kept["price"]) == ("completed", "0.02 play USDC")
    for secret in ("a tab that was closed", "signature", "authorization"):
        assert secret not in json.dumps(kept)


def test_a_refused_purchase_takes_no_other_one_with_it(shop, browser):
    browser.between(_SILENT)
    browser.open(shop.base_url + PICTURE)
    for prompt in ("first", "second"):
        close_tab(browser, shop.base_url + PICTURE)
        ask(browser, prompt)
        choose_purse(browser)
        browser.click("#pay")
        browser.until(
            "Object.values(localStorage).some((one) => one.includes(arguments[0]))", prompt
        )
        # Meanwhile no other one can be continued.
        assert not browser.run("return document.querySelector('#continue')")
    close_tab(browser, shop.base_url + PICTURE)
    browser.find("#continue")
    browser.run("sessionStorage.refuses = true")
    browser.click("#continue")
    assert "Nothing was taken." in browser.find("#flow [role=alert]").text
    (kept,) = browser.run(_KEPT)
    assert kept["unfinished"]["body"]["prompt"] == "first"
    assert browser.run("return Object.keys(sessionStorage)") == ["refuses"]


def test_another_purchase_keeps_the_one_before(shop, browser):
    kept = buy(shop, browser)
    browser.click("#again")
    assert "kept under Your purchases" in browser.find(".notes").text
    close_tab(browser, f"{shop.base_url}/purchases")
    browser.click(".purchases .what")
    assert has_picture(browser)
    assert browser.run("return location.pathname") == f"/task/{kept['taskId']}"


def test_a_browser_without_room_is_asked_before_a_purchase_is_lost(shop, browser):
    browser.before_each_page(_FULL)
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    choose_purse(browser)
    browser.click("#pay")
    finish(browser)
    browser.click("#again")
    assert "Lose this purchase?" in browser.find("dialog").text
    browser.click("dialog [value=no]")
    browser.find("#again")
    browser.click("#again")
    browser.click("dialog [value=yes]")
    browser.until("!document.querySelector('#again')")


def test_purchases_are_exported_and_forgotten_only_after_a_question(shop, browser):
    kept = buy(shop, browser)
    browser.run("localStorage.foreign = '1'")
    browser.visit(f"{shop.base_url}/purchases")
    browser.run(
        "URL.createObjectURL = (file) => { file.text().then((text) => { window.file = text; });"
        " return 'blob:none'; }; HTMLAnchorElement.prototype.click = () => {};"
    )
    browser.click("#purchases > .tools button")
    exported = json.loads(browser.until("window.file"))
    (row,) = exported["purchases"]
    assert row["page"] == f"{shop.base_url}/task/{kept['taskId']}"
    assert row["transaction"] == kept["transaction"]
    assert kept["id"] not in json.dumps(exported)
    browser.click(".purchases .tools button")
    assert "only the link opens a task" in browser.find("dialog").text
    browser.click("dialog [value=no]")
    browser.find(".purchases")
    browser.click("#purchases > .tools button + button")
    browser.click("dialog [value=yes]")
    browser.find(".empty")
    assert browser.run("return Object.keys(localStorage)") == ["foreign"]


# -- the page of a task


def test_a_link_to_a_task_shows_it_to_anybody_who_may_keep_it(shop, browser):
    task = buy(shop, browser)["taskId"]
    browser.open(f"{shop.base_url}/task/{task}")
    assert has_picture(browser)
    assert "0.02 play USDC" in browser.text(".receipt")
    assert browser.run(_KEPT) == []
    browser.click("#about .tools button:not(.copy)")
    browser.until("document.querySelector('#about').innerText.includes('It is under')")
    assert [one["taskId"] for one in browser.run(_KEPT)] == [task]
    assert browser.complaints() == []


def test_a_failed_task_names_the_refund_and_whom_to_ask(other_shop, browser):
    task = buy(other_shop, browser, "/play/fails")["taskId"]
    for path in (None, f"/task/{task}"):
        if path:
            browser.visit(other_shop.base_url + path)
        browser.find("#flow .bad")
        body = browser.text("main")
        for words in ("The vendor refuses", "rules forbid", "back to you", "the operator"):
            assert words in body
        assert "content_policy" not in body
    browser.visit(f"{other_shop.base_url}/purchases")
    browser.until("document.querySelector('.purchases').innerText.includes('Failed, refund')")


# -- links


def test_a_link_fills_the_form_and_does_nothing_else(shop, browser):
    browser.before_each_page(_POSTS)
    evil = '%3Cimg src=x onerror="window.hit=1"%3E'
    browser.open(
        f"{shop.base_url}{PICTURE}?prompt={evil}&aspect_ratio=16:9&resolution={evil}"
        "&output_format=webp&fileUrl=https://example.com/a&slug=other&wallet=0x1"
    )
    said = browser.find("#linked").text
    assert "prompt (34 characters), aspect ratio, output format" in said
    assert "The resolution “<img src=x" in said
    assert browser.find("#field-prompt").get_property("value").startswith("<img src=x")
    chosen = "return [...document.querySelectorAll('#request :checked')].map((one) => one.value)"
    assert browser.run(chosen) == ["16:9", "webp", "1K"]
    assert browser.run("return [window.hit ?? null, window.posts, localStorage.length]") == [
        None,
        [],
        0,
    ]
    browser.click("#linked button")
    assert browser.find("#field-prompt").get_property("value") == ""
    assert browser.run(chosen) == ["1:1", "png", "1K"]
    assert browser.run("return location.search") == ""
    assert browser.complaints() == []


def test_a_link_that_is_too_long_for_the_form_is_left_out(shop, browser):
    browser.open(f"{shop.base_url}{PICTURE}?prompt={'x' * 10_001}")
    assert "longer than 10000 characters" in browser.find("#linked").text
    assert browser.find("#field-prompt").get_property("value") == ""


def test_a_purchase_by_a_link_is_shown_again_after_a_reload_and_not_made_again(shop, browser):
    before = shop.payments_of(shop.purse)
    browser.open(f"{shop.base_url}{PICTURE}?prompt=a+boat")
    browser.find("#linked")
    browser.click("#ask")
    choose_purse(browser)
    browser.click("#pay")
    finish(browser)
    browser.reload()
    finish(browser)
    # The next link in the same tab is the next request.
    browser.visit(f"{shop.base_url}{PICTURE}?prompt=a+ship")
    browser.find("#linked")
    assert browser.find("#field-prompt").get_property("value") == "a ship"
    assert shop.payments_of(shop.purse) == [*before, PRICE]


def test_the_forms_link_and_its_qr_code_lead_to_the_same_request(shop, browser):
    browser.open(shop.base_url + PICTURE)
    browser.find("#field-prompt").send_keys(WORDS)
    browser.click("label[for=aspect_ratio-2]")
    browser.click(".share summary")
    link = browser.find(".share .link-text").get_property("value")
    assert link.startswith(f"{shop.base_url}{PICTURE}?prompt=B%C3%A4r")
    assert read_code(browser) == link
    browser.visit(link)
    browser.find("#linked")
    assert browser.find("#field-prompt").get_property("value") == WORDS
    chosen = "return document.querySelector('[name=aspect_ratio]:checked').value"
    assert browser.run(chosen) == "4:3"


def read_code(browser: Browser) -> str:
    """Return the text of the QR code on the page, as a camera reads it."""
    cv2 = pytest.importorskip("cv2")
    numpy = pytest.importorskip("numpy")
    from PIL import Image

    browser.resize(1280, 2000)
    browser.darken()
    shot = browser.find(".qr").screenshot_as_png
    picture = numpy.array(Image.open(io.BytesIO(shot)).convert("L"))
    return cv2.QRCodeDetector().detectAndDecode(picture)[0]


# -- any screen


@pytest.mark.parametrize("width", [390, 1280])
def test_the_pages_fit_the_screen(shop, browser, width):
    task = buy(shop, browser)["taskId"]
    browser.resize(width)
    for path in (f"/task/{task}", "/purchases", "/nothing", f"{PICTURE}?prompt={'x' * 300}"):
        browser.visit(shop.base_url + path)
        browser.until("document.querySelector('.state.live')")
        assert browser.run("return document.scrollingElement.scrollWidth") <= width, path


# -- a button on another site


def test_another_site_shows_a_button_that_opens_the_form(shop, browser, httpserver):
    # The strictest policy that lets the script in: no styles, no requests.
    policy = f"default-src 'none'; script-src {shop.base_url}/button.js"
    link = f"{shop.base_url}{PICTURE}?prompt=a+boat"
    site = (
        f'<!doctype html><a id="one" href="{link}" data-gateway-button>Buy</a>'
        '<a id="evil" href="https://example.com/play/x" data-gateway-button>Other</a>'
        f'<script async src="{shop.base_url}/button.js"></script>'
    )
    httpserver.expect_request("/").respond_with_data(
        site, content_type="text/html", headers={"Content-Security-Policy": policy}
    )
    browser.visit(httpserver.url_for("/"))
    assert browser.until("document.querySelector('#one').rel") == "noopener noreferrer"
    look = "return getComputedStyle(document.querySelector('#one')).display"
    assert browser.run(look) == "inline-block"
    assert browser.run("return [one.target, evil.target]") == ["_blank", ""]
    # Of a link that is added later, too.
    browser.run("document.body.append(one.cloneNode(true)); document.body.lastChild.rel = ''")
    browser.until("document.body.lastChild.rel")
    assert browser.complaints() == []
    browser.click("#one")
    tabs = browser.driver.window_handles
    try:
        browser.driver.switch_to.window(tabs[-1])
        assert "prompt" in browser.find("#linked").text
        assert browser.run("return [window.opener, document.referrer]") == [None, ""]
    finally:
        browser.driver.close()
        browser.driver.switch_to.window(tabs[0])
