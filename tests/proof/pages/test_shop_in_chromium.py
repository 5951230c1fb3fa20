"""A shop of 50 offers: rows, kinds and a search; and the price of the chosen options."""

import pytest

_SHOWN = "[...document.querySelectorAll('.offer')].filter((one) => one.checkVisibility())"


def shown(browser) -> list[str]:
    return browser.run(f"return {_SHOWN}.map((one) => one.id)")


@pytest.mark.parametrize(("width", "most"), [(1280, 5_000), (390, 8_500)])
def test_many_offers_fit_on_a_page(other_shop, browser, width, most):
    """48 cards had 9,274 pixels, and 24,308 on a phone."""
    browser.resize(width)
    browser.open(other_shop.base_url)
    assert len(shown(browser)) == 50
    assert browser.run("return document.documentElement.scrollHeight") < most
    assert browser.run("return document.scrollingElement.scrollWidth") <= width


def test_words_and_kinds_narrow_the_rows(other_shop, browser):
    browser.open(other_shop.base_url)
    browser.find("#words").send_keys("MODEL-1")
    browser.until(f"{_SHOWN}.length < 50")
    # In the name of the model, which the row itself does not show.
    assert set(shown(browser)) == {"offer-1", *(f"offer-{number}" for number in range(10, 20))}
    assert browser.text("#found") == "11 found."
    browser.click("label[for=kind-3]")
    assert browser.text(".group:not([hidden]) h3").startswith("Documents as text")
    assert shown(browser) == ["offer-11", "offer-14", "offer-17"]
    browser.find("#words").send_keys(" nowhere")
    assert browser.text("#found") == "Nothing found. Try fewer words, or All."
    assert shown(browser) == []
    browser.find("#words").clear()
    browser.click("label[for=kind-all]")
    browser.until(f"{_SHOWN}.length === 50")
    assert browser.text("#found") == ""


def test_without_javascript_all_offers_are_there_and_no_search(other_shop, browser):
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    browser.driver.get(other_shop.base_url)
    rows = browser.driver.find_elements("css selector", ".offer")
    assert len([row for row in rows if row.is_displayed()]) == 50
    assert not browser.driver.find_element("id", "search").is_displayed()


def test_the_total_is_that_of_the_chosen_options_and_the_one_that_is_paid(other_shop, browser):
    browser.open(f"{other_shop.base_url}/play/offer-0")
    browser.find("#field-prompt").send_keys("a boat")
    assert browser.text("#total") == "0.08 play USDC"
    browser.click("label[for=resolution-2]")
    assert browser.text("label[for=resolution-2] small") == "0.24"
    assert browser.text("#total") == "0.24 play USDC"
    browser.click("#ask")
    assert "0.24 play USDC" in browser.find(".total").text
