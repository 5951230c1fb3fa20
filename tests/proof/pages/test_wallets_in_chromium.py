"""Wallets on another chain, each with different responses, buy on Base."""

import json

import pytest
from eth_account import Account

from tests.proof.pages.browser import Browser, Shop, open_shop

PICTURE, PRICE = "/play/sandbox-image", 20_000
BASE, MAINNET = 8453, 1
# A wallet that only sets a global in the window, or also announces itself. SCENARIO defines its
# responses to `wallet_switchEthereumChain` and `wallet_addEthereumChain`.
_WALLET = """
window.calls = [];
const state = {chain: CHAIN, knows: KNOWS};
const scenario = SCENARIO;
const request = async ({method, params}) => {
  window.calls.push(method);
  if (method === "eth_requestAccounts") return [ADDRESS];
  if (method === "eth_chainId") return "0x" + state.chain.toString(16);
  if (scenario[method]) return scenario[method](state, parseInt(params[0].chainId, 16));
  if (method === "eth_signTypedData_v4")
    return new Promise((resolve) => { window.pending = {data: params[1], sign: resolve}; });
  throw {code: 4200, message: "Unsupported method"};
};
window.leaveBase = () => { state.chain = 1; };
const provider = {request};
if (WHERE === "window") window.ethereum = provider;
else window.addEventListener("eip6963:requestProvider", () => {
  const icon = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>";
  const detail = {info: {uuid: "1", name: "Fox", rdns: "test.fox", icon}, provider};
  window.dispatchEvent(new CustomEvent("eip6963:announceProvider", {detail}));
});
"""
_SWITCHES = "wallet_switchEthereumChain: (state, id) => { SWITCH; state.chain = id; return null; }"
_UNKNOWN = "if (!state.knows) throw {code: 4902, message: 'Unrecognized chain ID'}"
# The form of mobile wallets.
_NESTED = (
    "if (!state.knows) throw {code: -32603, message: 'Internal error', "
    "data: {originalError: {code: 4902, message: 'Unrecognized chain ID'}}}"
)
_ADDS_AND_SWITCHES = (
    "wallet_addEthereumChain: (state, id) => { state.knows = true; state.chain = id; return null; }"
)
_ADDS_AND_STAYS = "wallet_addEthereumChain: (state) => { state.knows = true; return null; }"


def switches(how: str = "") -> str:
    return _SWITCHES.replace("SWITCH", how)


@pytest.fixture(scope="module")
def shop(_needed, tmp_path_factory):
    """A shop on Base, without play money."""
    with open_shop(tmp_path_factory.mktemp("shop"), play_key="") as opened:
        yield opened


@pytest.fixture
def customer(shop: Shop):
    account = Account.create()
    shop.chain.fund(account.address, eth_wei=0, usdc_units=10**6)
    return account


def begin(
    shop: Shop,
    browser: Browser,
    account,
    *scenario: str,
    chain: int = MAINNET,
    knows: bool = False,
    where: str = "event",
) -> None:
    """Open the page with one wallet, ask for the price, and choose the wallet."""
    script = _WALLET.replace("ADDRESS", json.dumps(account.address)).replace("CHAIN", str(chain))
    script = script.replace("KNOWS", json.dumps(knows)).replace("WHERE", json.dumps(where))
    browser.before_each_page(script.replace("SCENARIO", f"{{{', '.join(scenario)}}}"))
    browser.open(shop.base_url + PICTURE)
    browser.find("#field-prompt").send_keys("a boat")
    browser.click("#ask")
    browser.click("#wallets [data-wallet]")


def pay(shop: Shop, browser: Browser, account) -> list[str]:
    """Sign, wait for the result, and return the wallet's calls."""
    browser.click("#pay")
    data = json.loads(browser.until("window.pending?.data"))
    assert data["domain"]["chainId"] == BASE
    signature = account.sign_typed_data(full_message=data).signature
    browser.run("window.pending.sign(arguments[0])", "0x" + bytes(signature).hex())
    browser.find("#again")
    assert shop.payments_of(account.address) == [PRICE]
    return browser.run("return window.calls")


@pytest.mark.parametrize("how", [_UNKNOWN, _NESTED], ids=["plain", "nested"])
def test_a_chain_that_the_wallet_does_not_know_is_added(shop, browser, customer, how):
    begin(shop, browser, customer, switches(how), _ADDS_AND_SWITCHES)
    calls = pay(shop, browser, customer)
    assert calls.count("wallet_addEthereumChain") == 1


def test_a_wallet_that_adds_base_and_stays_is_switched_again(shop, browser, customer):
    begin(shop, browser, customer, switches(_UNKNOWN), _ADDS_AND_STAYS)
    calls = pay(shop, browser, customer)
    assert calls.count("wallet_switchEthereumChain") == 2


def test_a_wallet_that_cannot_switch_and_is_on_base_buys(shop, browser, customer):
    begin(shop, browser, customer, chain=BASE)
    assert "wallet_switchEthereumChain" not in pay(shop, browser, customer)


def test_a_wallet_that_is_only_in_the_window_buys(shop, browser, customer):
    begin(shop, browser, customer, switches(), knows=True, where="window")
    pay(shop, browser, customer)


def test_a_wallet_that_left_base_before_it_signs_is_switched_back(shop, browser, customer):
    begin(shop, browser, customer, switches(), chain=BASE)
    browser.find("#pay")
    browser.run("window.leaveBase()")
    calls = pay(shop, browser, customer)
    assert calls.index("wallet_switchEthereumChain") < calls.index("eth_signTypedData_v4")


def test_a_wallet_that_stays_on_another_chain_signs_nothing(shop, browser, customer):
    begin(shop, browser, customer)
    message = browser.find("#flow [role=alert]").text
    assert message == "Fox is on another network. Choose Base in it, then try again."
    assert "eth_signTypedData_v4" not in browser.run("return window.calls")
    assert shop.payments_of(customer.address) == []


def test_a_refused_switch_is_no_wish_to_add_a_chain(shop, browser, customer):
    begin(shop, browser, customer, switches("throw {code: 4001}"), _ADDS_AND_SWITCHES)
    assert "You declined in the wallet." in browser.find("#flow [role=alert]").text
    assert "wallet_addEthereumChain" not in browser.run("return window.calls")
