"""For Chromium: a gateway with a month of sales, and a vendor that refuses the key."""

import contextlib
import json
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.operator_history import Sale, add_sales
from tests.proof.pages.browser import Browser, Shop, open_shop

REFUND_KEY = "0x" + "5e" * 32
# Texts outside the operator's control: a buyer's prompt and a vendor's message.
HOSTILE = '"><img src=x onerror=alert(1)><script>alert(1)</script>'
_ENDPOINTS = (
    ("document-parser", 10_000, 0.4, 0),
    ("sandbox-image", 20_000, 1.3, 0),
    ("openai-image", 80_000, 8.2, None),
)


class _Refuses(BaseHTTPRequestHandler):
    """A vendor that accepts no key."""

    def do_GET(self) -> None:
        body = b'{"error": {"code": "invalid_api_key", "message": "Incorrect API key."}}'
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def open_desk(folder: Path, **settings: str) -> Iterator[Shop]:
    """Start a gateway with a month of sales, and a vendor that refuses its key."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refuses)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    given = {
        "openai_api_key": "sk-not-known",
        "openai_base_url": f"http://127.0.0.1:{server.server_port}/v1",
        "openai_models": "gpt-image-1-mini",
        "refund_key": REFUND_KEY,
        "refunds": "manual",
        "settings_secret": "0123456789abcdef" * 2,
    }
    try:
        with open_shop(folder, **(given | settings)) as shop:
            write_history(folder / "data" / "gateway.db", time.time())
            _sell_what_fails(shop)
            yield shop
    finally:
        server.shutdown()
        server.server_close()


def _sell_what_fails(shop: Shop) -> None:
    """Buy from the vendor that refuses the key; the first sale takes it off sale."""
    from tests.conftest import Payer

    body = json.dumps({"prompt": "a boat"}).encode()
    headers = {"Content-Type": "application/json"}
    address = f"{shop.base_url}/api/x402/openai-image"
    with pytest.raises(HTTPError) as asked:
        urlopen(Request(address, body, headers))
    price = int(json.load(asked.value)["accepts"][0]["maxAmountRequired"])
    paid = headers | {"X-PAYMENT": Payer(shop.chain).header(price, to=shop.place.wallet)}
    with urlopen(Request(address, body, paid)) as answer:
        assert answer.status == 200


def write_history(path: Path, now: float, *, count: int = 900) -> None:
    """Write a month of sales, more of them recent, and some refunds to decide."""
    chance = random.Random(13)
    sales = []
    for _ in range(count):
        # Half of them within the last day.
        ago_s = chance.random() ** 4 * 29 * 86_400
        slug, units, typical_s, cost = chance.choices(_ENDPOINTS, (3, 5, 6))[0]
        fails = slug == "openai-image" and chance.random() < 0.1
        decided = "refunded" if fails and ago_s > 7000 else ""
        hostile = fails and chance.random() < 0.2
        sales.append(
            Sale(
                at=now - ago_s,
                slug=slug,
                units=units,
                status="failed" if fails else "completed",
                state=decided,
                took_s=typical_s * (0.6 + chance.expovariate(2)),
                cost_micros=None if fails else cost,
                reason=HOSTILE if hostile else "The vendor answers 500 server_error.",
                payer=f"0x{chance.getrandbits(160):040x}",
                gas_wei=int(4.1e11 * (0.8 + 0.4 * chance.random())),
            )
        )
    sales.sort(key=lambda sale: sale.at)
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as db, db:
        add_sales(db, sales)


def log_in(browser: Browser, shop: Shop) -> None:
    """Log the operator in by the form, unless the window is logged in."""
    if _is_logged_in(browser, shop):
        return
    browser.visit(f"{shop.base_url}/admin")
    browser.find("input[name=password]").send_keys(shop.place.password)
    browser.click("main button")
    browser.find("#live")
    # Clears the form page's 401 from the console.
    browser.complaints()


def _is_logged_in(browser: Browser, shop: Shop) -> bool:
    """Ask the shop whether it knows the window's session.

    A cookie proves nothing: those of 127.0.0.1 are shared by all ports, and so by all shops.
    """
    cookies = browser.cdp("Network.getCookies", urls=[shop.base_url])["cookies"]
    sent = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in cookies)
    try:
        with urlopen(Request(f"{shop.base_url}/admin", headers={"Cookie": sent})):
            return True
    except HTTPError as error:
        if error.code != HTTPStatus.UNAUTHORIZED:
            raise
        return False
