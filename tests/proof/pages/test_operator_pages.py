"""The operator's pages in Chromium: on a phone, in the dark, by keyboard, without script, live."""

import json
import re

import pytest
from selenium.webdriver.common.keys import Keys

from tests.proof.pages.operator_desk import HOSTILE, log_in, open_desk

# Each page, and words that it must show even without its script.
WORDS = {
    "/admin?range=30d": ("openai-image", "sandbox-image", "Needs you", "24h"),
    "/admin/refunds": ("To decide", "Approve the chosen ones", "proven payer", "openai-image"),
    "/admin/refunds?state=paid": ("Paid", "openai-image", "On their way"),
    "/admin/tasks": ("document-parser", "completed", "Why it failed", "Older"),
    "/admin/payments": ("Open", "Unused transfers", "Paid too much"),
    "/admin/endpoints": ("openai-image", "sandbox-image", "Try now", "24h"),
    "/admin/books": ("By endpoint", "Every sale, refund and cost", "cost?", "Cash margin at most"),
    "/admin/system": ("Refund key", "Newest block", "Backups", "Audit log"),
    "/admin/system/actions": ("Audit log", "Export as CSV", "login"),
    "/admin/alarms": ("On now", "Channels", "GATEWAY_ALARM_URLS"),
    "/admin/access": ("Sessions", "Passkeys", "Make a token", "Refused logins"),
}
PAGES = tuple(WORDS)
# The others run in `make long-proofs`.
SOME = [
    pytest.param(path, marks=[pytest.mark.full] * (place > 1)) for place, path in enumerate(PAGES)
]
DARK = "rgb(18, 24, 31)"
# Every visible text with its colour and background: those below 4.5:1 (large ones 3:1).
_PALE = """
const parse = (text) => {
  const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
  return [r, g, b, a];
};
const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
  .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (one) => {
  for (; one; one = one.parentElement) {
    const color = parse(getComputedStyle(one).backgroundColor);
    if (color[3] === 1 && !getComputedStyle(one).backgroundColor.startsWith("color(")) return color;
  }
  return [255, 255, 255, 1];
};
const texts = [...document.querySelectorAll("body *")].filter((one) =>
  one.checkVisibility() && !one.closest("svg, .sr, .skip") &&
  [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
return texts.filter((one) => {
  const style = getComputedStyle(one);
  const [a, b] = [light(parse(style.color)), light(behind(one))].sort((x, y) => y - x);
  const least = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
  return (a + 0.05) / (b + 0.05) < least;
}).map((one) => `${one.className} ${one.textContent.trim().slice(0, 40)}`);
"""
_SMALL = """
return [...document.querySelectorAll("main :is(button, .button, select, input, .seg a)")]
  .filter((one) => one.checkVisibility() && !one.matches("[type=checkbox], [type=hidden]"))
  .filter((one) => one.getBoundingClientRect().height < 36)
  .map((one) => one.outerHTML.slice(0, 100));
"""
_REACHED = """
return [...document.querySelectorAll(`main :is(${arguments[0]})`)]
  .filter((one) => one.checkVisibility()).filter((one) => !window.reached.has(one))
  .map((one) => one.outerHTML.slice(0, 100));
"""
_OUTLINE = "return getComputedStyle(document.activeElement).outlineStyle"
_FOCUSABLE = "a, button, summary, input:not([type=hidden]), select, textarea, [tabindex='0']"


@pytest.fixture(scope="module")
def shop(_needed, tmp_path_factory):
    with open_desk(tmp_path_factory.mktemp("desk")) as opened:
        yield opened


@pytest.fixture
def desk(browser, shop):
    """A browser with the operator logged in."""
    log_in(browser, shop)
    return browser


def open_page(desk, shop, path: str) -> None:
    desk.visit(f"{shop.base_url}{path}")
    desk.find("h1")


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_scrolls_down_only_and_its_buttons_are_large_enough(desk, shop, path):
    open_page(desk, shop, path)
    wide = "return document.documentElement.scrollWidth"
    for width in (500, 360):
        desk.resize(width)
        assert desk.run(wide) <= width
    desk.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    for width in (360, 500):
        desk.resize(width)
        assert desk.run(wide) <= width
        assert desk.run(_SMALL) == []


@pytest.mark.parametrize("path", SOME)
def test_every_word_can_be_read_in_both_schemes(desk, shop, path):
    ground = "return getComputedStyle(document.body.parentElement).backgroundColor"
    open_page(desk, shop, path)
    assert desk.run(_PALE) == []
    assert desk.run(ground) != DARK
    desk.darken()
    assert desk.run(ground) == DARK
    assert desk.run(_PALE) == []


@pytest.mark.parametrize("path", SOME)
def test_the_keyboard_reaches_every_action_and_the_focus_is_seen(desk, shop, path):
    # Pauses the script.
    desk.before_each_page("window.setTimeout = () => 0")
    open_page(desk, shop, path)
    desk.run("window.reached = new Set()")
    desk.press(Keys.TAB)
    assert desk.run("return document.activeElement.outerHTML.slice(0, 60)").startswith(
        '<a class="skip"'
    )
    # A date has three fields and a button; each stays the same element.
    count = f"return document.querySelectorAll({json.dumps(_FOCUSABLE)}).length"
    dates = "return document.querySelectorAll('[type=date]').length"
    for _ in range(desk.run(count) + 4 * desk.run(dates)):
        desk.press(Keys.TAB)
        desk.run("window.reached.add(document.activeElement)")
        # After the last one, the focus belongs to the browser.
        here = desk.run("return document.activeElement.outerHTML.slice(0, 100)")
        assert here.startswith("<body") or desk.run(_OUTLINE) != "none", here
    assert desk.run(_REACHED, _FOCUSABLE) == []


def test_the_session_of_a_shop_on_another_port_is_not_taken_for_ours(browser, shop):
    browser.cdp("Network.setCookie", name="gateway_admin", value="theirs", url=shop.base_url)
    log_in(browser, shop)
    open_page(browser, shop, "/admin")
    assert "Log out" in browser.text("body")


def test_the_skip_link_leads_past_the_bar(desk, shop):
    open_page(desk, shop, "/admin")
    desk.press(Keys.TAB, Keys.ENTER)
    assert desk.run("return document.activeElement.id") == "main"


@pytest.mark.parametrize("path", SOME)
def test_without_script_the_page_is_complete(browser, shop, path):
    log_in(browser, shop)
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    browser.visit(f"{shop.base_url}{path}")
    browser.find("main h1")
    page = browser.text("body")
    for words in (*WORDS[path], "Log out"):
        assert words in page


@pytest.mark.parametrize("path", [*PAGES, "/admin?range=24h", "/admin/tasks?state=failed"])
def test_what_others_wrote_stays_text_and_the_policy_is_kept(desk, shop, path):
    desk.before_each_page("window.alert = () => { window.alerted = true; }")
    open_page(desk, shop, path)
    assert desk.run("return window.alerted") is None
    # Only the QR codes of System are pictures, and only Access loads its own script.
    strange = "main img:not([src^='data:image/svg+xml']), main script:not([src^='/admin/assets/'])"
    assert desk.run("return document.querySelectorAll(arguments[0]).length", strange) == 0
    assert desk.run("return document.querySelectorAll('[onerror], [style], style').length") == 0
    assert desk.complaints() == []


@pytest.mark.parametrize("path", ["/admin/refunds", "/admin/tasks?state=failed"])
def test_a_vendors_words_are_shown_as_they_are(desk, shop, path):
    open_page(desk, shop, path)
    assert HOSTILE in desk.text("main")
    desk.click("main td a[href^='/admin/tasks/'], main th a[href^='/admin/tasks/']")
    desk.find("#timeline")
    assert desk.complaints() == []


def test_a_refund_is_decided_without_a_script_and_each_step_fits_a_phone(browser, shop):
    log_in(browser, shop)
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    browser.resize(360)
    browser.visit(f"{shop.base_url}/admin/refunds")
    browser.click("button[value^='reject:']")
    asked = read_page(browser, "Give nothing back?")
    payer = re.search(r"openai-image for (0x[0-9a-f]{40})\s+0\.08 USDC", asked)[1]
    assert browser.run("return document.documentElement.scrollWidth") <= 360
    browser.find("[name=reason]").send_keys(HOSTILE)
    browser.click("main button")
    message = read_page(browser, "Rejected. You can still approve them later.")
    assert f"you: {HOSTILE}" in message
    browser.click("button[value^='approve:']")
    asked = read_page(browser, "Give money back?")
    assert f"openai-image for {payer}" in asked
    assert "The refund key lacks 0.08 USDC" in asked
    browser.click("main button")
    read_page(browser, "Approved, but nothing is sent yet: the refund key")
    assert browser.complaints() == []


def read_page(browser, words: str) -> str:
    """Wait for the page with these words, and return its whole text."""
    browser.until("document.body?.innerText.includes(arguments[0])", words)
    return browser.text("main")


def test_a_refresh_keeps_the_focus_and_what_is_open(desk, shop):
    open_page(desk, shop, "/admin?range=7d")
    desk.click("#numbers > summary")
    desk.run("window.old = document.querySelector('h1').parentElement")
    desk.run("document.querySelector('.needs a').focus()")
    focused = desk.run("return document.activeElement.getAttribute('href')")
    # The time in the heading changes, so that part is replaced.
    desk.until("!window.old.isConnected")
    assert desk.run("return document.activeElement.getAttribute('href')") == focused
    assert desk.run("return document.querySelector('#numbers').open")
    assert "here" in desk.run("return document.querySelector('main time').title")


@pytest.mark.full
def test_a_page_that_hears_nothing_says_since_when_and_recovers(desk, shop):
    desk.before_each_page(
        "const real = window.fetch; window.fetch = (...all) => "
        "sessionStorage.cut ? Promise.reject(new Error('cut')) : real(...all);"
    )
    open_page(desk, shop, "/admin")
    assert not desk.run("return document.body.classList.contains('stale')")
    desk.run("sessionStorage.cut = 1")
    desk.until("document.body.classList.contains('stale')")
    assert desk.text("#stale").startswith("Stale since ")
    desk.run("sessionStorage.clear()")
    desk.until("!document.body.classList.contains('stale')")
    assert desk.text("#stale") == ""
