"""Debian's Chromium on the pages of a real gateway, driven by selenium."""

import contextlib
import importlib.util
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import attrs
from eth_account import Account

from gateway.domain.eip3009 import BASE, NETWORKS
from gateway_demo.chain import PlayChain
from gateway_demo.tour.client import Client, open_session
from gateway_demo.tour.place import Place
from gateway_demo.tour.processes import HOST, Child, choose_port

# The timeout of a failing test; a passing one does not wait that long.
PATIENCE_S = 240
_POLL_S = 0.1
_TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"  # topic
_OPTIONS = (
    "--headless=new",
    # Chromium's own sandbox needs rights that a container does not have.
    "--no-sandbox",
    "--disable-gpu",
    # Nor is there a GPU to imitate, which takes an eighth of the CPU of a run.
    "--disable-software-rasterizer",
    "--disable-gpu-rasterization",
    "--disable-dev-shm-usage",
    "--no-proxy-server",
    "--hide-scrollbars",
    # Otherwise a page may still be scrolling smoothly during a click.
    "--force-prefers-reduced-motion",
)
# Two wallets announce themselves (EIP-6963). The test signs and responds for them. Like real ones,
# they reject a domain with a field that its type does not name.
_WALLETS = """
window.calls = [];
const isTyped = ({domain, types}) =>
  Object.keys(domain).every((key) => types.EIP712Domain.some(({name}) => name === key));
const announce = (name, rdns) => {
  const request = ({method, params}) => new Promise((resolve, reject) => {
    window.calls.push({name, method, params});
    const connect = () => resolve([ADDRESS]);
    if (method === "eth_requestAccounts") window.holds ? (window.connects = connect) : connect();
    else if (method === "eth_chainId") resolve("0x2105");
    else if (!isTyped(JSON.parse(params[1]))) reject({message: "The domain has an unknown field"});
    else window.pending = {
      data: params[1],
      sign: resolve,
      refuse: () => reject({code: 4001, message: "User rejected"}),
    };
  });
  const icon = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>";
  const detail = Object.freeze({info: {uuid: rdns, name, rdns, icon}, provider: {request}});
  window.dispatchEvent(new CustomEvent("eip6963:announceProvider", {detail}));
};
const both = () => { announce("Fox", "test.fox"); announce("Owl", "test.owl"); };
window.addEventListener("eip6963:requestProvider", both);
"""
_FETCH = """
const real = window.fetch;
window.fetch = async (path, request) => {
  const payment = request?.headers?.["PAYMENT-SIGNATURE"];
  const send = () => real(path, request);
  SCRIPT
  return send();
};
"""
# The first paid request is sent and answered, but the page gets no response.
_LOSE_FIRST_ANSWER = """
if (payment && !sessionStorage.lost) {
  await send();
  sessionStorage.lost = payment;
  return new Promise(() => {});
}
"""


def missing() -> str | None:
    """Return the requirements of these tests that this machine lacks."""
    lacks = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    lacks += [] if importlib.util.find_spec("selenium") else ["selenium"]
    return f"missing: {', '.join(lacks)} (see CONTRIBUTING.md)" if lacks else None


@attrs.define
class Shop:
    """A gateway that sells pictures and documents for play money, and its chain."""

    base_url: str
    place: Place
    chain: PlayChain

    @property
    def purse(self) -> str:
        """The address of the pages' wallet."""
        return Account.from_key(self.place.purse_key).address

    def payments_of(self, address: str) -> list[int]:
        """Return the units of each transfer from an account to the gateway."""
        topics = [
            _TRANSFER,
            *("0x" + one[2:].lower().rjust(64, "0") for one in (address, self.place.wallet)),
        ]
        query = {"fromBlock": "0x0", "address": self.chain.usdc, "topics": topics}
        return [int(log["data"], 16) for log in self.chain.rpc.result("eth_getLogs", query)]


@contextlib.contextmanager
def open_shop(
    folder: Path, *, chain_id: int = BASE.chain_id, host: str = HOST, **settings: str
) -> Iterator[Shop]:
    """Start a chain and a gateway on it."""
    with (
        PlayChain(chain_id=chain_id) as chain,
        open_gateway(folder, chain, host=host, **settings) as shop,
    ):
        yield shop


@contextlib.contextmanager
def open_gateway(
    folder: Path, chain: PlayChain, *, host: str = HOST, **settings: str
) -> Iterator[Shop]:
    """Start `gateway serve` in a process of its own, and fund the pages' wallet."""
    place = Place(port=choose_port(0, "--port"), rpc_port=0, output=folder, folder=folder)
    with open_session() as session:
        chain.fund(Account.from_key(place.settlement_key).address, usdc_units=0)
        chain.fund(Account.from_key(place.purse_key).address, eth_wei=0, usdc_units=10**8)
        chain.fund(Account.from_key(place.refund_key).address, usdc_units=10**7)
        network = next(one.name for one in NETWORKS.values() if one.chain_id == chain.chain_id)
        given = {"network": network}
        given |= {"rpc_urls": chain.rpc_url, "limit_x402": "1000/60s", "min_free_disk_mb": "0"}
        given["base_url"] = f"http://{host}:{place.port}"
        gateway = Child.start("gateway", ["serve"], folder, **(place.settings | given | settings))
        try:
            gateway.wait_until(Client(place.base_url, session).answers)
            yield Shop(given["base_url"], place, chain)
        finally:
            gateway.stop()


@attrs.define
class Browser:
    """One window of Chromium."""

    driver: object = attrs.field(repr=False)
    _scripts: list[str] = attrs.field(factory=list)

    def reset(self) -> None:
        """Undo a test's changes."""
        for script in self._scripts:
            self.cdp("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
        self._scripts.clear()
        self.cdp("Emulation.clearDeviceMetricsOverride")
        self.cdp("Emulation.setEmulatedMedia", features=[])
        self.cdp("Emulation.setScriptExecutionDisabled", value=False)
        self.driver.get("about:blank")
        self.driver.get_log("browser")

    def open(self, url: str) -> None:
        """Open a page as a new visitor."""
        # A page without a script, because a script would go on with an earlier purchase.
        self.driver.get(urljoin(url, "/robots.txt"))
        self.run("sessionStorage.clear(); localStorage.clear()")
        self.visit(url)

    def visit(self, url: str) -> None:
        """Open a page, and wait until it has loaded completely."""
        self.driver.get(url)
        self._wait_until_loaded()

    def reload(self) -> None:
        """Reload the page, and wait until it has loaded completely."""
        self.driver.refresh()
        self._wait_until_loaded()

    def _wait_until_loaded(self) -> None:
        # The driver may return before the new document is read, mostly if its URL is the same as
        # before.
        self.until("document.readyState === 'complete'")

    def cdp(self, command: str, **parameters):
        return self.driver.execute_cdp_cmd(command, parameters)

    def run(self, script: str, *arguments):
        """Run a script in the page, and return its result."""
        return self.driver.execute_script(script, *arguments)

    def resize(self, width: int, height: int = 900) -> None:
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=width < 500)  # fmt: skip

    def darken(self) -> None:
        feature = {"name": "prefers-color-scheme", "value": "dark"}
        self.cdp("Emulation.setEmulatedMedia", features=[feature])

    def before_each_page(self, script: str) -> None:
        found = self.cdp("Page.addScriptToEvaluateOnNewDocument", source=f"(() => {{{script}}})()")
        self._scripts.append(found["identifier"])

    def announce_wallets(self, address: str) -> None:
        """Let two wallets of this account announce themselves on each page."""
        self.before_each_page(_WALLETS.replace("ADDRESS", json.dumps(address)))

    def lose_first_answer(self) -> None:
        """Lose the response to the first paid request."""
        self.between(_LOSE_FIRST_ANSWER)

    def between(self, script: str) -> None:
        """Put a script between page and gateway.

        It gets a request's `path` and `payment`, and `send`; its result is the response.
        """
        self.before_each_page(_FETCH.replace("SCRIPT", script))

    def until(self, script: str, *arguments):
        """Wait until a script returns something true, and return it."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := self.run(f"return {script}", *arguments)):
            assert time.monotonic() < deadline, f"{script}\n{self.text('body')}"
            time.sleep(_POLL_S)
        return found

    def find(self, selector: str):
        """Wait for a visible element, and return it."""
        return self.until(
            "((one) => one?.checkVisibility() ? one : null)(document.querySelector(arguments[0]))",
            selector,
        )

    def click(self, selector: str) -> None:
        """Click an element once it is clickable."""
        self.until(
            "((one) => one && !one.disabled)(document.querySelector(arguments[0]))", selector
        )
        element = self.find(selector)
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        element.click()

    def text(self, selector: str) -> str:
        """Return an element's visible text."""
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def press(self, *keys: str) -> None:
        """Press keys at the focus."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def complaints(self) -> list[str]:
        """Return the console's errors, including those of the page's policy."""
        messages = [entry["message"] for entry in self.driver.get_log("browser")]
        # The icon is served by another part of the gateway.
        return [line for line in messages if "/favicon.ico" not in line and " 402 " not in line]


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for option in _OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
