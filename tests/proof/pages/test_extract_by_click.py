"""A person in a browser extracts data from a document: by a suggestion, and by a prompt."""

import json

from gateway_demo.sample import sample_pdf
from tests.proof.pages.browser import Browser

EXTRACT = "/play/sandbox-extract"
EXTRACT_PRICE = 20_000  # units


def choose_invoice(browser: Browser, tmp_path) -> None:
    file = tmp_path / "invoice.pdf"
    file.write_bytes(sample_pdf())
    browser.driver.find_element("id", "file").send_keys(str(file))


def test_the_json_of_a_schema_is_shown_as_it_is(shop, browser, tmp_path):
    before = shop.payments_of(shop.purse)
    browser.open(shop.base_url + EXTRACT)
    choose_invoice(browser, tmp_path)
    browser.click("#ideas button:nth-of-type(2)")
    browser.click("#ask")
    browser.click("[data-wallet=purse]")
    browser.click("#pay")
    browser.find("#again")
    found = json.loads(browser.text(".document pre"))
    assert found == {"date": "30 September 2026", "total": 9479.0}
    assert "Copy JSON" in browser.text(".document .tools")
    assert shop.payments_of(shop.purse) == [*before, EXTRACT_PRICE]
    assert browser.complaints() == []


def test_half_a_schema_is_told_in_the_gateways_words(shop, browser, tmp_path):
    browser.open(shop.base_url + EXTRACT)
    choose_invoice(browser, tmp_path)
    browser.find("#field-prompt").send_keys('{"type": "object"')
    browser.click("#ask")
    browser.until("document.querySelector('#form-error').innerText.includes('Schema')")
    assert "it is not whole, valid JSON." in browser.text("#form-error")


def test_the_sample_answers_the_first_suggestion(shop, browser):
    browser.open(shop.base_url + EXTRACT)
    browser.click("#sample")
    browser.click("#ideas button")
    browser.click("#ask")
    browser.click("[data-wallet=purse]")
    browser.click("#pay")
    browser.find("#again")
    found = json.loads(browser.text(".document pre"))
    assert "30 September 2026" in found["dates"]
    assert "148050.00 USD" in found["amounts"]
