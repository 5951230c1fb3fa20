"""A person in a browser buys:

by the pages' wallet, another wallet, keyboard, and across reloads.
"""

import json

import pytest
from eth_account import Account

from tests.proof.pages.browser import Browser, Shop
from tests.proof.pages.purchases import (
    DOCUMENT,
    DOCUMENT_PRICE,
    PICTURE,
    PRICE,
    ask,
    choose_purse,
    finish,
    finish_by_continuing,
    has_picture,
)

# Payments get no verdict until the test allows it.
_JUDGES_NOTHING = """
if (payment && sessionStorage.judges_nothing) {
  sessionStorage.refused = payment;
  return new Response("{}", {status: STATUS, headers: {"Retry-After": "0"}});
}
if (payment) sessionStorage.sent = payment;
"""
# The first quoted price is half of the price at payment.
_OLD_PRICE = """
if (payment || sessionStorage.asked || !path.startsWith("/api/x402/")) return send();
const answer = await send();
sessionStorage.asked = true;
const challenge = JSON.parse(atob(answer.headers.get("PAYMENT-REQUIRED")));
challenge.accepts[0].amount = "10000";
const headers = {"PAYMENT-REQUIRED": btoa(JSON.stringify(challenge))};
return new Response("{}", {status: 402, headers});
"""
# The 402 of a gateway that cannot settle x402 now.
_NO_OFFER = """
if (!path.startsWith("/api/x402/")) return send();
const answer = await send();
const challenge = JSON.parse(atob(answer.headers.get("PAYMENT-REQUIRED")));
challenge.accepts = [];
challenge.error = "A direct USDC transfer works. Send 0.02 USDC.";
const headers = {"PAYMENT-REQUIRED": btoa(JSON.stringify(challenge))};
return new Response("{}", {status: 402, headers});
"""
# The task is done, so no poll waits: without a pause they would soon be too many.
_SETTLING = """
if (!path.startsWith("/api/task/") || sessionStorage.settled) return send();
await new Promise((resolve) => setTimeout(resolve, 200));
const answer = await send();
if (!answer.ok) return answer;
const task = await answer.json();
const payment_now = {...task.payment, state: "settling", transaction: null};
return Response.json({...task, status: "queued", done: false, payment: payment_now});
"""


@pytest.fixture
def customer(shop: Shop):
    """A new account with one dollar."""
    account = Account.create()
    shop.chain.fund(account.address, eth_wei=0, usdc_units=10**6)
    return account


def sign(browser: Browser, account) -> dict:
    """Sign the page's request to a wallet, and return it."""
    data = json.loads(browser.until("window.pending?.data"))
    signature = account.sign_typed_data(full_message=data).signature
    browser.run("window.pending.sign(arguments[0])", "0x" + bytes(signature).hex())
    return data


def test_a_picture_is_bought_by_click_with_the_purse(shop, browser):
    before = shop.payments_of(shop.purse)
    browser.open(shop.base_url)
    browser.find(".notice")
    assert "Play money." in browser.text(".notice")
    browser.click(".hero .primary")
    browser.click("#ideas button")
    browser.click("#ask")
    assert "0.02 play USDC" in browser.text("#flow") or browser.find(".total")
    choose_purse(browser)
    words = browser.text(".review")
    for outcome in ("0.02 play USDC", shop.place.wallet, shop.purse, "Base (embedded play chain)"):
        assert outcome in words
    assert "Valid until" in words
    browser.click("#pay")
    outcome = finish(browser)
    assert has_picture(browser)
    assert "0x" in outcome
    assert shop.payments_of(shop.purse) == [*before, PRICE]
    assert browser.complaints() == []


def test_every_wallet_is_listed_and_the_chosen_one_signs_what_was_shown(shop, browser, customer):
    browser.announce_wallets(customer.address)
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    browser.find("[data-wallet='test.owl']")
    browser.click("[data-wallet='test.fox']")
    browser.find("#pay")
    shown = browser.text(".review")
    assert "valid on Base, too" in browser.text("#flow")
    browser.click("#pay")
    data = sign(browser, customer)
    assert data["message"]["value"] == str(PRICE)
    assert data["message"]["to"].lower() == shop.place.wallet.lower()
    assert data["message"]["to"] in shown
    assert customer.address in shown
    finish(browser)
    assert has_picture(browser)
    calls = browser.run("return window.calls.map((one) => [one.name, one.method])")
    assert calls == [
        ["Fox", "eth_requestAccounts"],
        ["Fox", "eth_chainId"],
        ["Fox", "eth_chainId"],
        ["Fox", "eth_signTypedData_v4"],
    ]
    assert shop.payments_of(customer.address) == [PRICE]


def test_a_refusal_in_the_wallet_and_an_empty_account_are_sentences_with_a_way_out(shop, browser):
    poor = Account.create()
    browser.announce_wallets(poor.address)
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    browser.click("[data-wallet='test.fox']")
    browser.click("#pay")
    browser.until("window.pending")
    browser.run("window.pending.refuse(); window.pending = null")
    assert "You declined in the wallet." in browser.find("#flow [role=alert]").text
    browser.click("[data-wallet='test.fox']")
    browser.click("#pay")
    sign(browser, poor)
    browser.until("document.querySelector('#flow [role=alert]')?.innerText.includes('too little')")
    assert "Nothing was taken." in browser.text("#flow [role=alert]")
    browser.find("[data-wallet=purse]")
    assert shop.payments_of(poor.address) == []


def test_an_answer_of_a_wallet_that_comes_late_neither_pays_nor_moves_the_page(
    shop, browser, customer
):
    before = shop.payments_of(shop.purse)
    browser.announce_wallets(customer.address)
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    browser.run("window.holds = true")
    browser.click("[data-wallet='test.fox']")
    browser.until("!!window.connects")
    choose_purse(browser)
    browser.run("window.connects()")
    assert shop.purse in browser.text(".review")
    browser.click("#flow .tools button")
    browser.run("window.holds = false")
    browser.click("[data-wallet='test.owl']")
    browser.click("#pay")
    browser.until("window.pending")
    browser.click("#flow .tools button")
    choose_purse(browser)
    sign(browser, customer)
    assert shop.purse in browser.text(".review")
    # Every request is stored before it is sent.
    assert browser.run("return Object.keys(sessionStorage)") == []
    browser.click("#pay")
    finish(browser)
    assert shop.payments_of(customer.address) == []
    assert shop.payments_of(shop.purse) == [*before, PRICE]


def test_a_reload_before_the_answer_sends_the_same_payment_and_pays_once(shop, browser):
    before = shop.payments_of(shop.purse)
    browser.lose_first_answer()
    browser.open(shop.base_url + PICTURE)
    ask(browser, "a reload")
    choose_purse(browser)
    browser.click("#pay")
    browser.until("sessionStorage.lost")
    browser.reload()
    finish(browser)
    assert has_picture(browser)
    assert browser.run("return document.querySelector('#field-prompt').value") == "a reload"
    assert shop.payments_of(shop.purse) == [*before, PRICE]
    # Again, with the result present: the page shows it and sends nothing.
    browser.reload()
    finish(browser)
    assert has_picture(browser)
    assert shop.payments_of(shop.purse) == [*before, PRICE]
    browser.click("#again")
    browser.reload()
    assert browser.find("#ask").is_enabled()
    assert not browser.run("return document.querySelector('#again')")


def test_a_large_document_is_paid_once_over_a_reload(shop, browser, tmp_path):
    before = shop.payments_of(shop.purse)
    document, copy = tmp_path / "large.html", tmp_path / "copy.html"
    # More than a browser stores for a page.
    document.write_text(f"<p>A long document</p><!--{'x' * 4_500_000}-->")
    copy.write_bytes(document.read_bytes())
    browser.lose_first_answer()
    browser.open(shop.base_url + DOCUMENT)
    browser.find("#field-prompt").send_keys("the totals")
    browser.driver.find_element("id", "file").send_keys(str(document))
    browser.click("#ask")
    choose_purse(browser)
    browser.click("#pay")
    browser.until("sessionStorage.lost")
    browser.reload()
    browser.until("document.querySelector('#flow').innerText.includes('large.html')")
    prompt = browser.find("#field-prompt")
    assert prompt.get_property("value") == "the totals"
    assert not prompt.is_enabled()
    # The form's own button continues the purchase, too.
    browser.click("#ask")
    assert "Choose the document first." in browser.find("#flow [role=alert]").text
    browser.driver.find_element("id", "file").send_keys(str(copy))
    browser.click("#ask")
    finish(browser)
    assert "A long document" in browser.text(".prose")
    assert shop.payments_of(shop.purse) == [*before, DOCUMENT_PRICE]


def test_a_payment_that_was_used_is_not_called_untaken_and_not_made_again(shop, browser, customer):
    before = shop.payments_of(shop.purse)
    browser.announce_wallets(customer.address)
    browser.lose_first_answer()
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    choose_purse(browser)
    browser.click("#pay")
    browser.until("sessionStorage.lost")
    browser.run(
        "const name = 'purchase:sandbox-image', kept = JSON.parse(sessionStorage[name]);"
        "kept.body.prompt = 'a ship'; sessionStorage[name] = JSON.stringify(kept)"
    )
    browser.reload()
    assert "used before" in browser.find("#flow [role=alert]").text
    assert "Nothing was taken" not in browser.text("#flow")
    browser.click("[data-wallet='test.fox']")
    browser.until("document.querySelector('#flow').innerText.includes('pay a second time')")
    choose_purse(browser)
    browser.click("#pay")
    browser.until("document.querySelector('#flow').innerText.includes('another request')")
    assert shop.payments_of(customer.address) == []
    assert shop.payments_of(shop.purse) == [*before, PRICE]


@pytest.mark.parametrize(
    "status", [403, *(pytest.param(one, marks=pytest.mark.full) for one in (404, 408, 425, 429))]
)
def test_an_answer_that_judges_no_payment_leaves_it_to_be_sent_again(shop, browser, status):
    before = shop.payments_of(shop.purse)
    browser.between(_JUDGES_NOTHING.replace("STATUS", str(status)))
    browser.open(shop.base_url + PICTURE)
    browser.run("sessionStorage.judges_nothing = true")
    ask(browser)
    choose_purse(browser)
    browser.click("#pay")
    browser.until("document.querySelector('#flow').innerText.includes('Not finished yet')")
    browser.run("sessionStorage.removeItem('judges_nothing')")
    finish_by_continuing(browser)
    assert browser.run("return sessionStorage.sent === sessionStorage.refused")
    assert shop.payments_of(shop.purse) == [*before, PRICE]


def test_after_a_refusal_the_price_is_asked_again(shop, browser):
    before = shop.payments_of(shop.purse)
    browser.between(_OLD_PRICE)
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    assert "0.01 play USDC" in browser.find(".total").text
    choose_purse(browser)
    browser.click("#pay")
    assert "Nothing was taken." in browser.find("#flow [role=alert]").text
    assert "0.02 play USDC" in browser.find(".total").text
    choose_purse(browser)
    browser.click("#pay")
    finish(browser)
    assert shop.payments_of(shop.purse) == [*before, PRICE]


def test_without_an_offer_the_page_says_why_and_how_to_pay(shop, browser):
    browser.between(_NO_OFFER)
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    assert "A direct USDC transfer works. Send 0.02 USDC." in browser.find("[role=alert]").text


def test_paid_is_said_once_the_payment_is_settled(shop, browser):
    browser.between(_SETTLING)
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    choose_purse(browser)
    browser.click("#pay")
    browser.until("document.querySelector('#flow').innerText.includes('still being settled')")
    assert browser.text("#flow .track [aria-current=step]") == "Paid"
    assert "Paid." not in browser.text("#flow")
    browser.run("sessionStorage.settled = true")
    assert "Paid" in finish(browser)


def test_a_task_that_is_not_known_any_more_is_not_called_unfinished(shop, browser):
    browser.between('if (path.startsWith("/api/task/")) return new Response("{}", {status: 404});')
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    choose_purse(browser)
    browser.click("#pay")
    message = browser.find("#flow [role=alert]").text
    assert "does not know this task" in message
    assert "0x" in message
    assert "never pays twice" not in browser.text("#flow")
    assert browser.text("#flow .primary") == "Start again"
