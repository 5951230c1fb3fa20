"""A person in a browser signs nothing in vain, and reads what became of the money."""

import pytest
from eth_account import Account

from gateway.domain.eip3009 import BASE_SEPOLIA
from tests.proof.pages.browser import open_shop
from tests.proof.pages.purchases import PICTURE, PRICE, ask, choose_purse, finish

# The chain, or the gas, is gone after the price was named.
_NOT_SELLING = """
if (path !== "/api/ready") return send();
sessionStorage.asked = true;
const checks = [{name: "rpc", ok: false, stops: "STOPS", problem: "No RPC endpoint works."}];
return Response.json({ready: true, selling: "SELLING", checks});
"""
# The gateway has looked the payment up.
_UNCHARGED = """
if (!payment || sessionStorage.refused) return send();
sessionStorage.refused = true;
return Response.json({error: "The chain is silent; nothing was charged. Try again later."},
                     {status: 500});
"""
# An answer of a gateway, or of a proxy that knows nothing of the payment.
_REFUSED = """
if (!payment || sessionStorage.refused) return send();
sessionStorage.refused = true;
return Response.json(BODY, {status: 402});
"""


@pytest.mark.parametrize(
    ("selling", "stops", "way"),
    [
        ("nothing", "paid routes", "Try again later."),
        ("transfers", "x402", "A plain USDC transfer works: the code for curl shows how."),
    ],
)
def test_nothing_is_signed_if_it_cannot_be_paid_any_more(shop, browser, selling, stops, way):
    before = shop.payments_of(shop.purse)
    browser.announce_wallets(Account.create().address)
    browser.between(_NOT_SELLING.replace("SELLING", selling).replace("STOPS", stops))
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    browser.click("[data-wallet='test.fox']")
    message = browser.find("#flow [role=alert]").text
    assert message.startswith("Nothing was signed")
    assert "No RPC endpoint works." in message
    assert message.endswith(way)
    assert not browser.run("return window.pending")
    assert shop.payments_of(shop.purse) == before


@pytest.mark.full
def test_what_ends_during_the_review_closes_the_button_until_it_is_back(shop, browser):
    before = shop.payments_of(shop.purse)
    ended = _NOT_SELLING.replace("SELLING", "nothing").replace("STOPS", "paid routes")
    browser.between(f"if (!window.isDown) return send();{ended}")
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    choose_purse(browser)
    browser.run("window.isDown = true")
    browser.until("document.querySelector('#pay').disabled")
    assert "Nothing was signed" in browser.text("#flow")
    browser.run("window.isDown = false")
    browser.until("!document.querySelector('#pay').disabled")
    assert "Nothing was signed" not in browser.text("#flow")
    browser.click("#pay")
    finish(browser)
    assert shop.payments_of(shop.purse) == [*before, PRICE]


def test_a_payment_that_took_nothing_is_not_called_perhaps_lost(shop, browser):
    before = shop.payments_of(shop.purse)
    browser.between(_UNCHARGED)
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    choose_purse(browser)
    browser.click("#pay")
    browser.until("document.querySelector('#flow').innerText.includes('nothing was charged')")
    words = browser.text("#flow")
    assert "you lose nothing" in words
    assert "may be paid" not in words
    browser.click("#flow .primary")
    finish(browser)
    assert shop.payments_of(shop.purse) == [*before, PRICE]


@pytest.mark.parametrize(
    ("body", "is_said"), [('{error: "no", charged: false}', True), ('{error: "no"}', False)]
)
def test_that_nothing_was_taken_is_said_if_the_answer_says_so(shop, browser, body, is_said):
    browser.between(_REFUSED.replace("BODY", body))
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    choose_purse(browser)
    browser.click("#pay")
    message = browser.find("#flow [role=alert]").text
    assert ("Nothing was taken." in message) is is_said


def test_in_the_demo_a_failure_is_bought_and_refunded_before_the_visitors_eyes(browser, tmp_path):
    with open_shop(tmp_path, chain_id=BASE_SEPOLIA.chain_id) as shop:
        units = shop.chain.usdc_balance(shop.purse)
        browser.open(f"{shop.base_url}/play/fails-on-purpose")
        assert "Play money." in browser.text(".notice")
        ask(browser)
        choose_purse(browser)
        assert "Base Sepolia (embedded play chain)" in browser.text(".review")
        browser.click("#pay")
        assert "fails on purpose" in finish(browser)
        browser.until("document.querySelector('.receipt').innerText.includes('was sent back')")
        assert shop.chain.usdc_balance(shop.purse) == units
