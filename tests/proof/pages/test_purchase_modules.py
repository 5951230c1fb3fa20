"""Modules of the pages alone, with a browser's storage and answers: purchases and refusals."""

import json

import pytest

from tests.proof.pages.test_page_modules import bundle, run_node

LATER = "0x" + "12" * 32
# The parts of a browser that the modules use. `page` is what the server writes into a page.
_BROWSER = """
class Store {
  setItem(name, value) { this[name] = String(value); }
  getItem(name) { return this[name] ?? null; }
  removeItem(name) { delete this[name]; }
}
globalThis.localStorage = new Store();
globalThis.sessionStorage = new Store();
const target = new EventTarget();
globalThis.document = {
  hidden: false,
  getElementById: () => ({textContent: JSON.stringify(PAGE)}),
  addEventListener: (...given) => target.addEventListener(...given),
  removeEventListener: (...given) => target.removeEventListener(...given),
};
globalThis.showPage = () => {
  document.hidden = false;
  target.dispatchEvent(new Event("visibilitychange"));
};
const terms = {amount: "20000"};
const purchase = (key) => ({
  key, body: {prompt: "a boat"}, file: null, payment: "", authorization: {}, terms,
});
const names = () => [...Object.keys(localStorage), ...Object.keys(sessionStorage)];
"""
_PAGE = {
    "slug": "picture",
    "title": "A picture",
    "network": {"label": "Base", "money": "USDC"},
    "transfers": True,
    "deploysWallets": True,
}


@pytest.fixture(scope="module")
def run(frontend, tmp_path_factory):
    """Return a function that runs a script with a module as `it`, and returns its result."""
    folder = tmp_path_factory.mktemp("modules")

    def run(module: str, script: str, **page):
        out = folder / f"{module}.mjs"
        if not out.exists():
            bundle(frontend, module, out)
        browser = _BROWSER.replace("PAGE", json.dumps(_PAGE | page))
        load = f"const it = await import({json.dumps(out.as_uri())});"
        end = "console.log(JSON.stringify(await result())); process.exit();"
        return json.loads(
            run_node(f"{browser}{load}const result = async () => {{{script}}};{end}", frontend)
        )

    return run


# -- a purchase that took nothing


def test_a_refused_purchase_is_forgotten_and_the_tabs_own_stays(run):
    left = run(
        "saved",
        "it.save(purchase('a')); it.save(purchase('b')); it.forget(purchase('a'));"
        "return [names(), it.load().key];",
    )
    assert left == [["bought:b", "purchase:picture"], "b"]


def test_a_refused_purchase_of_the_tab_leaves_nothing_in_it(run):
    left = run(
        "saved",
        "it.save(purchase('a')); it.save(purchase('b')); it.forget(purchase('b'));return names();",
    )
    assert left == ["bought:a"]


def test_a_purchase_that_the_tab_cannot_hold_does_not_leave_the_one_before_in_it(run):
    left = run(
        "saved",
        "it.save(purchase('a'));"
        "const fail = () => { throw new Error('full'); };"
        "Object.defineProperty(sessionStorage, 'setItem', {value: fail});"
        "it.save(purchase('b')); return names();",
    )
    assert left == ["bought:a", "bought:b"]


# -- looking for a transfer

_LOOK = """
const asked = [];
globalThis.fetch = async (path) => {
  asked.push(path);
  return Response.json({transaction: FOUND});
};
const at = Math.floor(Date.now() / 1000) + AGO;
const look = () => it.findTransfer("key", {units: "20001", payBy: at}, () => true);
"""


def test_a_page_that_was_hidden_asks_as_soon_as_it_is_shown(run):
    script = _LOOK.replace("FOUND", json.dumps(LATER)).replace("AGO", "600")
    found = run(
        "transfers",
        # The slow timers of a hidden page never end.
        f"{script} globalThis.setTimeout = () => 0; document.hidden = true;"
        "const looking = look(); await new Promise(setImmediate); const before = asked.length;"
        "showPage(); return [before, await looking, asked.length];",
    )
    assert found == [0, LATER, 1]


@pytest.mark.parametrize("ago", [-60, -86_400])
def test_a_transfer_that_came_late_is_found(run, ago):
    script = _LOOK.replace("FOUND", json.dumps(LATER)).replace("AGO", str(ago))
    assert run("transfers", f"{script} return look();") == LATER


def test_a_day_later_the_gateway_is_asked_once(run):
    script = _LOOK.replace("FOUND", "null").replace("AGO", "-86400")
    found = run(
        "transfers",
        f"globalThis.setTimeout = (go) => queueMicrotask(go); {script}"
        "return [await look(), asked.length];",
    )
    assert found == [None, 1]


# -- refusals of an account that does not exist yet

_SIGNATURE = "0x" + "00" * 32 + "6492" * 16
_REFUSE = """
globalThis.fetch = async () => Response.json({error: "ERROR", charged: false}, {status: 402});
const payment = btoa(JSON.stringify({payload: {signature: "SIGNATURE"}}));
return it.pay("{}", "key", payment, () => {}).catch((error) => error.message);
"""
_WRONG = "invalid_exact_evm_payload_signature"
_LIMIT = "This gateway deploys no more new smart wallets today. Deploy the wallet."
_NO_MORE = "This gateway opens no more new accounts today. Choose"
_BY_CODE = "Choose “Any wallet, by QR code”, or an account that was used before."


@pytest.mark.parametrize(
    ("error", "signature", "transfers", "said"),
    [
        (_WRONG, "0x00", True, "The signature does not fit the account."),
        (_WRONG, _SIGNATURE, True, f"This gateway opens no new account of this kind. {_BY_CODE}"),
        (_LIMIT, _SIGNATURE, True, f"This gateway opens no more new accounts today. {_BY_CODE}"),
        (_LIMIT, _SIGNATURE, False, f"{_NO_MORE} another wallet, or an account that was used"),
        ("insufficient_balance", _SIGNATURE, True, "This account holds too little. Add funds, or"),
    ],
)
def test_a_new_account_that_is_refused_is_told_the_way(run, error, signature, transfers, said):
    script = _REFUSE.replace("ERROR", error).replace("SIGNATURE", signature)
    message = run("api", script, transfers=transfers)
    assert message.startswith(said)
    assert message.endswith("Nothing was taken.")
