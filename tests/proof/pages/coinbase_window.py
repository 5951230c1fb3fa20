"""Coinbase's window of Base Account, played in the page: the edge at which the SDK is faked.

The SDK itself runs: it opens the window, exchanges keys with it, and encrypts its requests. A test
signs what arrives, as a passkey would.
"""

import json

from eth_account.messages import encode_typed_data
from eth_utils.crypto import keccak

from tests.proof.pages.browser import Browser
from tests.proof.wallets.base_account import BaseAccount

# `window.blocks` is how many windows the browser blocks.
_WINDOW = """
const SITE = "https://keys.coinbase.com";
const pair = (byte) => byte.toString(16).padStart(2, "0");
const hex = (bytes) => [...new Uint8Array(bytes)].map(pair).join("");
const bytes = (text) => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
const curve = {name: "ECDH", namedCurve: "P-256"};
const own = crypto.subtle.generateKey(curve, true, ["deriveKey"]);
const post = (data) => window.dispatchEvent(new MessageEvent("message", {data, origin: SITE}));
let shared, told;
window.requests = [];
const meet = async (sender) => {
  const other = await crypto.subtle.importKey("spki", bytes(sender), curve, true, []);
  const kind = {name: "AES-GCM", length: 256};
  const secret = {name: "ECDH", public: other};
  const {privateKey} = await own;
  shared = await crypto.subtle.deriveKey(secret, privateKey, kind, false, ["encrypt", "decrypt"]);
};
const answer = async (requestId, value) => {
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const data = new TextEncoder().encode(JSON.stringify({result: {value}}));
  const cipherText = await crypto.subtle.encrypt({name: "AES-GCM", iv}, shared, data);
  const sender = hex(await crypto.subtle.exportKey("spki", (await own).publicKey));
  post({id: crypto.randomUUID(), requestId, sender, content: {encrypted: {iv, cipherText}}});
};
const take = async ({id, sender, content, data: about}) => {
  if (about) return void (told = about);
  if (content.handshake) {
    await meet(sender);
    return answer(id, null);
  }
  const {iv, cipherText} = content.encrypted;
  const plain = await crypto.subtle.decrypt({name: "AES-GCM", iv}, shared, cipherText);
  const {action} = JSON.parse(new TextDecoder().decode(plain));
  window.requests.push(action.method);
  const account = {address: ADDRESS, capabilities: {}};
  if (action.method === "wallet_connect") return answer(id, {accounts: [account]});
  const typed = action.params[1];
  const data = typeof typed === "string" ? typed : JSON.stringify(typed);
  window.pending = {data, sign: (value) => answer(id, value)};
};
window.open = (address) => {
  window.opened = String(address);
  if (window.blocks-- > 0) return null;
  setTimeout(() => post({id: "loaded", event: "PopupLoaded"}), 10);
  return {closed: false, focus() {}, close() {}, postMessage: (message) => void take(message)};
};
window.preferenceOfPage = () => told?.preference;
"""


def play_window(browser: Browser, account: BaseAccount, *, blocked: int = 0) -> None:
    """Let Coinbase's window answer for this account on each page."""
    script = _WINDOW.replace("ADDRESS", json.dumps(account.address))
    browser.before_each_page(f"window.blocks = {blocked}; {script}")


def sign_in_window(browser: Browser, account: BaseAccount) -> dict:
    """Sign the request that came to the window, and return it."""
    data = json.loads(browser.until("window.pending?.data"))
    message = encode_typed_data(full_message=data)
    digest = keccak(b"\x19" + message.version + message.header + message.body)
    signature = account.sign_digest(digest)
    if not account.is_deployed:
        signature = account.wrap(signature)
    browser.run(
        "const {sign} = window.pending; window.pending = null; sign(arguments[0])",
        "0x" + signature.hex(),
    )
    return data
