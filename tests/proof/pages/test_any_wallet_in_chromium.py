"""Buyers without a wallet in their browser: a QR code, a phone's wallet, and Base Account."""

import re
import time

import pytest
import requests
from eth_account import Account

from tests.proof.pages.browser import Browser, Shop, open_shop
from tests.proof.pages.coinbase_window import play_window, sign_in_window
from tests.proof.pages.purchases import (
    DOCUMENT,
    PICTURE,
    PRICE,
    ask,
    finish_by_continuing,
    has_picture,
)
from tests.proof.pages.test_accessibility import check
from tests.proof.wallets.base_account import base_account, install

ADDRESS = "https://shop.example.com"
# The page never gets the hash of its transfer.
_FINDS_NOTHING = """
if (path !== "/pay/transfer") return send();
const found = await (await send()).json();
return Response.json({...found, transaction: null});
"""
# An amount that the gateway did not reserve, because it reserves six in ten minutes.
_AMOUNT = """
const payBy = Math.floor(Date.now() / 1000) + 1800 - (sessionStorage.isOver ? 172800 : 0);
if (path.startsWith("/pay/amount")) return Response.json({units: "20123", payBy});
"""
# The gateway finds a transfer once it is sent, and refuses it for good.
_HASH = "0x" + "ab" * 32
_REFUSES = """
window.posts ??= 0;
const found = window.isSent || sessionStorage.isSent ? HASH : null;
if (path === "/pay/transfer") return Response.json({transaction: found});
if (path !== "/api/proxy-generate") return send();
window.posts += 1;
return Response.json({error: "It has bought something.", code: "TX_ALREADY_USED"}, {status: 400});
""".replace("HASH", repr(_HASH))
# A gateway that deploys no wallets.
_DEPLOYS_NOTHING = """
const parse = JSON.parse;
JSON.parse = (...given) => {
  const value = parse(...given);
  if (value?.deploysWallets) value.deploysWallets = false;
  return value;
};
"""
# The day's new wallets are deployed.
_DEPLOYS_NO_MORE = """
if (!payment) return send();
const error = "This gateway deploys no more new smart wallets today. Deploy the wallet.";
return Response.json({error, charged: false}, {status: 402});
"""
_HAS_CHUNK = """
return performance.getEntriesByType("resource").some(({name}) => name.includes("base-account"))
"""
_WINDOW_WALLET = "window.ethereum = {request: async () => []};"


@pytest.fixture(scope="module")
def shop(_needed, tmp_path_factory):
    """A shop on Base with a public address, without play money."""
    folder = tmp_path_factory.mktemp("any-wallet")
    public = {"base_url": ADDRESS, "webhooks": "off", "limit_direct": "100/60s"}
    with open_shop(folder, play_key="", **public) as opened:
        install(opened.chain)
        yield opened


@pytest.fixture
def phone(shop: Shop):
    """The account of a phone's wallet, with ETH for gas."""
    account = Account.create()
    shop.chain.fund(account.address, usdc_units=10**6)
    return account


def begin_transfer(shop: Shop, browser: Browser, prompt: str = "a boat") -> str:
    """Ask for a QR code, and return its text."""
    browser.open(shop.base_url + PICTURE)
    ask(browser, prompt)
    return shown_transfer(browser)


def shown_transfer(browser: Browser) -> str:
    browser.click("[data-wallet=transfer]")
    browser.find(".qr")
    return browser.run("return document.querySelector('#open-wallet').getAttribute('href')")


def pay(shop: Shop, uri: str, account) -> tuple[str, int]:
    """Send the transfer of the code, as a wallet does; returns hash and units."""
    known = re.fullmatch(r"ethereum:(\w+)@(\d+)/transfer\?address=(\w+)&uint256=(\d+)", uri)
    token, chain_id, payee, units = known.groups()
    assert (token, int(chain_id)) == (shop.chain.usdc, shop.chain.chain_id)
    assert payee.lower() == shop.place.wallet.lower()
    return shop.chain.transfer_usdc(account.key, payee, int(units)), int(units)


def end(browser: Browser) -> str:
    """Wait for the result, and return the final text; a busy machine may interrupt a purchase."""
    is_asked = "document.querySelector('#flow').innerText.includes('Not finished yet')"
    if browser.until(f"document.querySelector('#again') ? 'done' : {is_asked}") is True:
        finish_by_continuing(browser)
    return browser.text("#flow")


def use_hash(browser: Browser, text: str) -> None:
    browser.run("document.querySelector('.by-hand').open = true")
    field = browser.find("#hash")
    field.clear()
    field.send_keys(text)
    browser.click("#use-hash")


# -- a QR code


def test_a_transfer_by_qr_code_is_found_and_buys(shop, browser, phone):
    uri = begin_transfer(shop, browser)
    assert "Send exactly this amount" in browser.text("#flow")
    _, units = pay(shop, uri, phone)
    assert PRICE < units <= PRICE + 9_999
    outcome = end(browser)
    assert has_picture(browser)
    assert f"{units / 10**6:g} USDC" in outcome
    assert shop.payments_of(phone.address) == [units]
    assert browser.complaints() == []


def test_a_hash_is_taken_by_hand_after_a_reload_and_from_nobody_else(shop, browser, phone):
    browser.between(_FINDS_NOTHING)
    uri = begin_transfer(shop, browser)
    browser.reload()
    browser.find(".qr")
    assert browser.run("return document.querySelector('#open-wallet').getAttribute('href')") == uri
    use_hash(browser, "0x1234")
    assert "64 digits or letters" in browser.find(".by-hand [role=alert]").text
    tx_hash, units = pay(shop, uri, phone)
    stolen = {"slug": "sandbox-image", "prompt": "a thief", "txHash": tx_hash}
    answer = requests.post(
        f"http://127.0.0.1:{shop.place.port}/api/proxy-generate", json=stolen, timeout=60
    )
    assert answer.json()["code"] == "INVALID_PAYMENT"
    use_hash(browser, f"https://basescan.org/tx/{tx_hash}")
    end(browser)
    assert has_picture(browser)
    assert shop.payments_of(phone.address) == [units]


def test_a_transfer_that_pays_too_little_says_so_and_the_code_stays(shop, browser, phone):
    browser.between(_FINDS_NOTHING)
    uri = begin_transfer(shop, browser)
    little = shop.chain.transfer_usdc(phone.key, shop.place.wallet, PRICE - 1)
    use_hash(browser, little)
    assert "below the endpoint's price" in browser.find("#flow > * > [role=alert]").text
    assert browser.run("return document.querySelector('#open-wallet').getAttribute('href')") == uri


def test_a_found_transfer_that_is_refused_asks_for_no_other_and_is_not_tried_for_ever(
    shop, browser
):
    browser.between(_AMOUNT + _REFUSES)
    begin_transfer(shop, browser)
    browser.run("window.isSent = true")
    browser.find("#unused-hash")
    words = browser.text("#flow")
    for said in ("bought nothing", "It has bought something.", "Do not send another one", _HASH):
        assert said in words
    assert "Ask the operator" in words
    assert browser.run("return [document.querySelector('.qr'), window.posts]") == [None, 1]
    browser.click("#flow .wide")
    browser.until("window.posts === 2")
    browser.run("sessionStorage.isSent = true")
    browser.reload()
    browser.find("#unused-hash")
    assert browser.run("return window.posts") == 1


@pytest.mark.full
def test_a_hash_that_was_refused_and_is_then_found_is_not_sent_again(shop, browser):
    browser.between(_AMOUNT + _REFUSES)
    begin_transfer(shop, browser)
    use_hash(browser, _HASH)
    assert "It has bought" in browser.find("#flow > * > [role=alert]").text
    browser.find(".qr")
    browser.run("window.isSent = true")
    browser.find("#unused-hash")
    assert browser.run("return window.posts") == 1


def test_after_its_time_an_amount_is_shown_no_more_and_another_can_be_asked_for(shop, browser, axe):
    browser.between(_AMOUNT + _FINDS_NOTHING.replace("await (await send()).json()", "{}"))
    browser.open(shop.base_url + PICTURE)
    browser.run("sessionStorage.isOver = true")
    ask(browser)
    browser.click("[data-wallet=transfer]")
    browser.find("#use-hash")
    words = browser.text("#flow")
    assert "The time to send it is over" in words
    assert "do not pay again" in words
    # A day that is not today has its date.
    assert re.search(r"was yours until \w+.* \d{4}.*\d:\d\d", words)
    assert browser.run("return document.querySelector('.qr, #open-wallet')") is None
    browser.until("document.querySelector('#flow').innerText.includes('No transfer came in time')")
    check(browser, axe, "after the time")
    browser.run("delete sessionStorage.isOver")
    browser.click("#renew")
    browser.find(".qr")
    assert "Send it by " in browser.text("#flow")
    kept = browser.run("return JSON.parse(sessionStorage['purchase:sandbox-image']).transfer.payBy")
    assert kept > time.time()


def test_axe_finds_nothing_on_what_to_send(shop, browser, axe):
    begin_transfer(shop, browser)
    check(browser, axe, "what to send")
    browser.darken()
    browser.resize(390, 844)
    check(browser, axe, "what to send, on a dark phone")
    assert browser.run("return document.scrollingElement.scrollWidth") <= 390


def test_nobody_leaves_a_transfer_unasked(shop, browser):
    begin_transfer(shop, browser)
    browser.click("#flow .tools button")
    assert "Have you sent the transfer?" in browser.text("#flow")
    browser.click("#flow .primary")
    browser.find(".qr")
    browser.click("#flow .tools button")
    browser.until("document.querySelector('#flow').innerText.includes('Have you sent')")
    browser.click("#flow .tools button")
    browser.find("[data-wallet=transfer]")
    assert browser.run("return Object.keys(sessionStorage)") == []


def test_without_gas_the_form_sells_by_transfer_and_asks_for_no_signature(browser, tmp_path):
    no_gas = Account.create().key.hex()
    with open_shop(tmp_path, play_key="", settlement_key=no_gas) as shop:
        phone = Account.create()
        shop.chain.fund(phone.address, usdc_units=10**6)
        browser.announce_wallets(phone.address)
        browser.open(shop.base_url + DOCUMENT)
        # The first check of the key may come after the first page.
        while "By transfer only." not in browser.text("main"):
            time.sleep(0.5)
            browser.reload()
        browser.click("#sample")
        browser.click("#ask")
        uri = shown_transfer(browser)
        assert browser.run("return window.calls.length") == 0
        pay(shop, uri, phone)
        end(browser)
        assert "North Sea coast" in browser.text(".prose table")


# -- a phone


def test_on_a_phone_without_a_wallet_links_open_the_filled_page_in_apps(shop, browser):
    browser.resize(390, 844)
    browser.open(shop.base_url + PICTURE)
    browser.click("label[for=aspect_ratio-2]")
    ask(browser, "a boat & a sea")
    browser.find("#no-wallet a")
    links = browser.run(
        "return [...document.querySelectorAll('.apps a')].map((a) => a.getAttribute('href'))"
    )
    filled = f"{ADDRESS}{PICTURE}?prompt=a+boat+%26+a+sea&aspect_ratio=4%3A3"
    assert len(links) == 4
    assert links[0].startswith("https://link.metamask.io/dapp/" + filled.removeprefix("https://"))
    assert browser.run("return document.scrollingElement.scrollWidth") <= 390
    browser.find("[data-wallet=base-account]")
    browser.find("[data-wallet=transfer]")


def test_a_phones_wallet_that_is_only_in_the_window_takes_the_place_of_the_links(shop, browser):
    browser.resize(390, 844)
    browser.before_each_page(_WINDOW_WALLET)
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    browser.find("[data-wallet=browser]")
    assert not browser.run("return document.querySelector('#no-wallet')")


# -- Base Account


def test_a_new_base_account_buys_and_its_wallet_is_deployed(shop, browser):
    account = base_account(shop.chain)
    play_window(browser, account)
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    assert not browser.run(_HAS_CHUNK)
    browser.click("[data-wallet=base-account]")
    assert "keys.coinbase.com" in browser.text("#flow")
    browser.click("#open-account")
    browser.find("#pay")
    assert account.address.lower() in browser.text(".review").lower()
    browser.click("#pay")
    data = sign_in_window(browser, account)
    assert data["message"]["value"] == str(PRICE)
    end(browser)
    assert has_picture(browser)
    assert account.is_deployed
    assert shop.payments_of(account.address) == [PRICE]
    assert browser.run("return window.requests") == ["wallet_connect", "eth_signTypedData_v4"]
    assert browser.run("return window.opened").startswith("https://keys.coinbase.com/connect")
    # No telemetry, and nothing of anybody else's: the page's policy was not even asked.
    assert browser.run("return window.preferenceOfPage().telemetry") is False
    assert browser.run("return 'ClientAnalytics' in window") is False
    assert browser.complaints() == []


def test_a_base_account_that_exists_buys_though_the_browser_blocked_its_window_once(shop, browser):
    account = base_account(shop.chain)
    account.deploy()
    play_window(browser, account, blocked=1)
    browser.open(shop.base_url + PICTURE)
    browser.run("localStorage.clear()")
    browser.reload()
    ask(browser)
    browser.click("[data-wallet=base-account]")
    browser.click("#open-account")
    browser.click(".-base-acc-sdk-dialog-instance-button-primary")
    browser.find("#pay")
    browser.click("#pay")
    sign_in_window(browser, account)
    end(browser)
    assert shop.payments_of(account.address) == [PRICE]
    assert browser.complaints() == []


def test_no_new_account_is_promised_where_none_is_deployed(shop, browser):
    browser.before_each_page(_DEPLOYS_NOTHING)
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    assert "used before" in browser.find("[data-wallet=base-account]").text
    browser.click("[data-wallet=base-account]")
    browser.find("#open-account")
    words = browser.text("#flow")
    assert "this gateway opens no new accounts" in words
    assert "needs no gas" not in words


@pytest.mark.full
def test_a_new_account_beyond_the_days_limit_is_offered_the_qr_code(shop, browser):
    account = base_account(shop.chain)
    play_window(browser, account)
    browser.between(_DEPLOYS_NO_MORE)
    browser.open(shop.base_url + PICTURE)
    ask(browser)
    browser.click("[data-wallet=base-account]")
    browser.click("#open-account")
    browser.click("#pay")
    sign_in_window(browser, account)
    message = browser.find("#flow [role=alert]").text
    assert "no more new accounts today. Choose “Any wallet, by QR code”" in message
    assert "Nothing was taken." in message
    assert "used before" in browser.find("[data-wallet=base-account]").text
    browser.find("[data-wallet=transfer]")


def test_the_play_shop_asks_nobody_for_real_money(browser, tmp_path):
    """Its chain may have Base's id, so a phone or Base Account would pay on Base."""
    with open_shop(tmp_path) as play:
        browser.open(play.base_url + PICTURE)
        ask(browser)
        browser.find("[data-wallet=purse]")
        ways = browser.run(
            "return [...document.querySelectorAll('.wallet')].map((one) => one.dataset.wallet)"
        )
        assert ways == ["purse"]
