"""Pages for people without a mouse, script or wide screen, and their texts."""

import pytest

from tests.proof.pages.browser import open_shop
from tests.proof.pages.purchases import (
    DOCUMENT,
    DOCUMENT_PRICE,
    PICTURE,
    PRICE,
    ask,
    choose_purse,
    finish,
)


def test_a_picture_is_bought_by_keyboard(shop, browser):
    from selenium.webdriver.common.keys import Keys

    before = shop.payments_of(shop.purse)
    browser.open(shop.base_url + PICTURE)
    browser.until("!document.querySelector('#ask').disabled")
    for _ in range(30):
        browser.press(Keys.TAB)
        if browser.run("return document.activeElement.id") == "field-prompt":
            break
    browser.press("a keyboard", Keys.CONTROL + Keys.ENTER)
    browser.find("[data-wallet=purse]")
    browser.press(Keys.TAB)
    assert browser.run("return document.activeElement.dataset.wallet") == "purse"
    browser.press(Keys.ENTER)
    browser.find("#pay")
    assert browser.run("return document.activeElement.id") == "pay"
    browser.press(Keys.ENTER)
    finish(browser)
    assert shop.payments_of(shop.purse) == [*before, PRICE]


def test_a_document_is_shown_before_it_is_bought_and_its_text_stays_text(shop, browser, tmp_path):
    before = shop.payments_of(shop.purse)
    evil = tmp_path / "evil.txt"
    evil.write_text(
        '# A heading\n\n<img src=x onerror="window.hit=1">\n\n<script>window.hit=1</script>\n\n'
        "[a link](javascript:window.hit=1) ![a picture](https://example.com/track.png)\n"
    )
    browser.open(shop.base_url + DOCUMENT)
    browser.until("document.querySelector('#ask:not(:disabled)')")
    browser.driver.find_element("id", "file").send_keys(str(evil))
    assert "A heading" in browser.find("#preview pre").text
    assert "evil.txt" in browser.text("[data-language=python]") + browser.text("#preview")
    browser.click("#ask")
    choose_purse(browser)
    browser.click("#pay")
    finish(browser)
    assert "<script>" in browser.text(".prose")
    assert browser.run("return window.hit ?? null") is None
    assert browser.run("return document.querySelectorAll('.prose img, .prose script').length") == 0
    links = browser.run("return [...document.querySelectorAll('.prose a')].map((one) => one.href)")
    assert not [link for link in links if link.startswith("javascript:")]
    assert shop.payments_of(shop.purse) == [*before, DOCUMENT_PRICE]
    assert browser.complaints() == []


def test_the_sample_document_becomes_a_table(shop, browser):
    browser.open(shop.base_url + DOCUMENT)
    browser.click("#sample")
    browser.click("#ask")
    choose_purse(browser)
    browser.click("#pay")
    finish(browser)
    assert "North Sea coast" in browser.text(".prose table")


def test_a_failure_says_why_and_its_refund_arrives_while_the_visitor_watches(other_shop, browser):
    browser.open(f"{other_shop.base_url}/play/fails")
    ask(browser)
    choose_purse(browser)
    browser.click("#pay")
    outcome = finish(browser)
    assert "The vendor refuses this prompt." in outcome
    assert "The provider's rules forbid this content" in outcome
    assert "content_policy" not in outcome
    assert "refund_due" not in outcome
    assert "me@example.com" in outcome
    assert "0.02 play USDC. It is due back to you" in outcome
    # The page follows the refund while the visitor watches.
    browser.until("document.querySelector('.receipt').innerText.includes('was sent back to you')")
    assert "Refund sent by" in browser.text(".receipt")


@pytest.mark.full
def test_on_a_test_network_the_purse_has_a_new_key_and_the_receipt_a_link(browser, tmp_path):
    with open_shop(tmp_path, chain_id=84532, network="base-sepolia", play_key="") as shop:
        browser.open(shop.base_url + PICTURE)
        assert "Test network." in browser.text(".notice")
        ask(browser)
        choose_purse(browser)
        assert "faucet.circle.com" in browser.text("#flow")
        owner = browser.run("return document.querySelectorAll('.review code')[1].textContent")
        shop.chain.fund(owner, eth_wei=0, usdc_units=PRICE)
        browser.click("#pay")
        finish(browser)
        assert shop.payments_of(owner) == [PRICE]
        links = browser.run(
            "return [...document.querySelectorAll('.receipt a')].map((a) => a.href)"
        )
        assert links[0].startswith("https://sepolia.basescan.org/tx/0x")


def test_what_is_missing_is_said_before_anything_is_asked(shop, browser):
    browser.open(shop.base_url + DOCUMENT)
    browser.click("#ask")
    browser.until("document.querySelector('#form-error').innerText")
    assert browser.text("#form-error") == "Choose a document first."


def test_without_javascript_everything_is_there_but_the_wallet(shop, browser):
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    browser.driver.get(shop.base_url)
    body = browser.driver.find_element("css selector", "body").text
    for words in (
        "0.02 play USDC",
        "Document to Markdown",
        "x402_requests",
        "If a paid generation fails,",
    ):
        assert words in body
    # The tabs are radio buttons.
    browser.driver.find_element("css selector", "label[for=as-curl]").click()
    assert "curl -i" in browser.driver.find_element("css selector", "[data-language=curl]").text
    browser.driver.get(shop.base_url + PICTURE)
    body = browser.driver.find_element("css selector", "body").text
    assert "This form needs JavaScript" in body
    assert "x402_requests" in body


@pytest.mark.parametrize("path", ["/", PICTURE, DOCUMENT])
def test_a_phone_of_400_pixels_scrolls_in_one_direction_only(shop, browser, path):
    browser.resize(400)
    browser.open(shop.base_url + path)
    assert browser.run("return document.scrollingElement.scrollWidth") <= 400
    small = browser.run(
        "return [...document.querySelectorAll('button, .button, .choices label')]"
        ".filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 24)"
        ".map((one) => one.outerHTML)"
    )
    assert small == []


def test_dark_is_dark(shop, browser):
    browser.open(shop.base_url)
    ground = "return getComputedStyle(document.documentElement).backgroundColor"
    assert browser.run(ground) == "rgb(251, 250, 247)"
    browser.darken()
    assert browser.run(ground) == "rgb(18, 24, 31)"


def test_the_code_is_the_purchase_that_the_form_makes(shop, browser):
    browser.open(shop.base_url + PICTURE)
    browser.find("#field-prompt").send_keys('it\'s "quoted"')
    browser.click("label[for=aspect_ratio-2]")
    browser.click("label[for=as-curl]")
    code = browser.text("[data-language=curl]")
    assert '"prompt":"it\'\\\'\'s \\"quoted\\""' in code
    assert '"aspect_ratio":"4:3"' in code


def test_uvicorn_sells_by_click_too(other_shop, browser):
    before = other_shop.payments_of(other_shop.purse)
    browser.open(other_shop.base_url + DOCUMENT)
    browser.click("#sample")
    browser.click("#ask")
    choose_purse(browser)
    browser.click("#pay")
    finish(browser)
    assert other_shop.payments_of(other_shop.purse) == [*before, DOCUMENT_PRICE]
    assert browser.complaints() == []
