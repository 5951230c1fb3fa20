"""The operator's pages in Chromium: on a phone, in the dark, by keyboard, without script, live."""

import pytest
from selenium.webdriver.common.keys import Keys

from tests.proof.pages.operator_desk import HOSTILE, log_in, open_desk

PAGES = ("/admin?range=30d", "/admin/endpoints")
# Every visible text with its colour and what is behind it: those below 4.5:1 (large ones 3:1).
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
_REACHED = """
return [...document.querySelectorAll("main a, main button, main summary")]
  .filter((one) => one.checkVisibility()).filter((one) => !window.reached.has(one))
  .map((one) => one.textContent);
"""


@pytest.fixture(scope="module")
def shop(_needed, tmp_path_factory):
    with open_desk(tmp_path_factory.mktemp("desk")) as opened:
        yield opened


@pytest.fixture
def desk(browser, shop):
    """A browser in which the operator is logged in."""
    log_in(browser, shop)
    return browser


def open_page(desk, shop, path: str) -> None:
    desk.driver.get(f"{shop.base_url}{path}")
    desk.find("#live")


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_scrolls_down_only_and_its_buttons_are_large_enough(desk, shop, path):
    for width in (500, 360):
        desk.resize(width)
        open_page(desk, shop, path)
        assert desk.run("return document.documentElement.scrollWidth") <= width
        sizes = "[...document.querySelectorAll('main button, main .button, .seg a')]"
        heights = desk.run(f"return {sizes}.map((one) => one.getBoundingClientRect().height)")
        assert heights
        assert min(heights) >= 36


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_can_be_read_in_both_schemes(desk, shop, path, scheme):
    if scheme == "dark":
        desk.darken()
    open_page(desk, shop, path)
    assert desk.run(_PALE) == []
    is_dark = desk.run("return getComputedStyle(document.body.parentElement).backgroundColor")
    assert (is_dark == "rgb(18, 24, 31)") == (scheme == "dark")


@pytest.mark.parametrize("path", PAGES)
def test_the_keyboard_reaches_every_action_and_the_focus_is_seen(desk, shop, path):
    # The script holds still meanwhile.
    desk.before_each_page("window.setTimeout = () => 0")
    open_page(desk, shop, path)
    desk.run("window.reached = new Set()")
    desk.press(Keys.TAB)
    assert desk.run("return document.activeElement.outerHTML.slice(0, 60)").startswith(
        '<a class="skip"'
    )
    for _ in range(
        desk.run("return document.querySelectorAll('a, button, summary, [tabindex]').length")
    ):
        desk.press(Keys.TAB)
        desk.run("window.reached.add(document.activeElement)")
    assert desk.run(_REACHED) == []
    outline = "return getComputedStyle(document.querySelector('.needs a, .actions a')).outlineStyle"
    desk.run("document.querySelector('.needs a, .actions a').focus()")
    assert desk.run(outline) != "none"


def test_the_skip_link_leads_past_the_bar(desk, shop):
    open_page(desk, shop, "/admin")
    desk.press(Keys.TAB, Keys.ENTER)
    assert desk.run("return document.activeElement.id") == "main"


@pytest.mark.parametrize("path", PAGES)
def test_without_script_the_page_is_complete(browser, shop, path):
    log_in(browser, shop)
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    browser.driver.get(f"{shop.base_url}{path}")
    page = browser.driver.page_source
    for words in ("openai-image", "sandbox-image", "Log out", "24h"):
        assert words in page


def test_what_others_wrote_stays_text_and_the_policy_is_kept(desk, shop):
    desk.before_each_page("window.alert = () => { window.alerted = true; }")
    for path in (*PAGES, "/admin?range=24h", "/admin?range=1h"):
        open_page(desk, shop, path)
        assert desk.run("return window.alerted") is None
        assert desk.run("return document.querySelectorAll('main img, main script').length") == 0
    assert HOSTILE
    assert desk.complaints() == []


def test_a_refresh_keeps_the_focus_and_what_is_open(desk, shop):
    open_page(desk, shop, "/admin?range=7d")
    desk.click("#numbers > summary")
    desk.run("window.old = document.querySelector('h1').parentElement")
    desk.run("document.querySelector('.needs a').focus()")
    focused = desk.run("return document.activeElement.getAttribute('href')")
    # The time in the heading differs each time, so that part is replaced.
    desk.until("!window.old.isConnected")
    assert desk.run("return document.activeElement.getAttribute('href')") == focused
    assert desk.run("return document.querySelector('#numbers').open")
    assert "here" in desk.run("return document.querySelector('main time').title")


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
