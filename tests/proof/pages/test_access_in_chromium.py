"""The operator's login in a browser: passkeys, codes, and a form on another port's page."""

import contextlib
import re
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyotp
import pytest
from selenium.webdriver.common.virtual_authenticator import VirtualAuthenticatorOptions


@pytest.fixture
def shop(other_shop):
    return other_shop


@pytest.fixture
def browser(browser):
    yield browser
    browser.driver.delete_all_cookies()


@pytest.fixture
def passkeys(browser):
    """Give the browser its own authenticator."""
    options = VirtualAuthenticatorOptions()
    options.protocol = VirtualAuthenticatorOptions.Protocol.CTAP2
    options.transport = VirtualAuthenticatorOptions.Transport.INTERNAL
    options.has_resident_key = True
    options.has_user_verification = True
    options.is_user_verified = True
    browser.driver.add_virtual_authenticator(options)
    yield
    browser.driver.remove_virtual_authenticator()


def log_in(browser, shop, code: str = "") -> None:
    browser.visit(f"{shop.base_url}/admin/access")
    browser.find("#password").send_keys(shop.place.password)
    if code:
        browser.find("#code").send_keys(code)
    browser.click("main button")
    browser.find("#sessions")


def log_out(browser) -> None:
    browser.click("form[action='/admin/logout'] button")
    browser.find("#password")


def complaints(browser) -> list[str]:
    """Return the console's errors, except the statuses of pages that require a login."""
    asks = re.compile(r"status of 40[13] ")
    return [line for line in browser.complaints() if not asks.search(line)]


def database(shop):
    path = shop.place.folder / "data" / "gateway.db"
    return contextlib.closing(sqlite3.connect(path, timeout=60, isolation_level=None))


def test_a_passkey_is_added_logs_in_and_stands_for_the_password(browser, shop, passkeys):
    log_in(browser, shop)
    browser.find("#passkey-name").send_keys("laptop")
    browser.click("[data-passkey=new] button")
    browser.until("document.querySelector('#passkeys tbody')?.innerText.includes('laptop')")
    log_out(browser)
    browser.visit(f"{shop.base_url}/admin/access")
    browser.click("[data-passkey=login] button")
    browser.find("#sessions")
    with database(shop) as db:
        db.execute("UPDATE operator_sessions SET fresh_until = 0")
    browser.reload()
    browser.find("form[action='/admin/access/tokens'] [name=name]").send_keys("by passkey")
    browser.click("form[action='/admin/access/tokens'] button")
    browser.click("[data-passkey=fresh] button")
    browser.until("document.querySelector('.done')?.innerText.includes('ggw_')")
    assert complaints(browser) == []


def test_a_passkey_that_is_not_used_is_said_so(browser, shop, passkeys):
    log_in(browser, shop)
    browser.find("#passkey-name").send_keys("phone")
    browser.click("[data-passkey=new] button")
    browser.until("document.querySelector('#passkeys tbody')?.innerText.includes('phone')")
    log_out(browser)
    browser.driver.set_user_verified(False)
    browser.click("[data-passkey=login] button")
    browser.until("document.querySelector('[data-passkey-problem]')?.innerText.length > 5")
    browser.find("#password")


def test_codes_are_set_up_and_asked_for_without_a_script(browser, shop):
    browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    log_in(browser, shop)
    browser.click("form[action='/admin/access/codes/begin'] button")
    drawing = browser.find("#codes svg")
    assert drawing.size["width"] >= 150
    phone = pyotp.TOTP(re.search(r"secret: ([A-Z2-7]{32})", browser.text("#codes"))[1])
    browser.find("#first-code").send_keys(phone.now())
    browser.click("form[action='/admin/access/codes/confirm'] button")
    browser.find("form[action='/admin/access/codes/off']")
    log_out(browser)
    with database(shop) as db:
        db.execute("UPDATE operator_codes SET last_step = 0")
    log_in(browser, shop, phone.now())
    browser.click("form[action='/admin/access/codes/off'] button")
    browser.find("form[action='/admin/access/codes/begin']")
    assert complaints(browser) == []


def test_everything_fits_a_phone(browser, shop):
    browser.resize(360)
    log_in(browser, shop)
    width = browser.run("return document.documentElement.scrollWidth")
    assert width <= 360
    assert complaints(browser) == []


class _Neighbour(BaseHTTPRequestHandler):
    """A page on another port of this machine, whose forms send our cookies."""

    target = ""

    def do_GET(self) -> None:
        form = f'<form method="post" action="{self.target}"><button>Win</button></form>'
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(form.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_form_of_a_neighbour_is_refused_though_it_carries_the_cookie(browser, shop):
    log_in(browser, shop)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Neighbour)
    _Neighbour.target = f"{shop.base_url}/admin/logout"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        browser.visit(f"http://localhost:{server.server_port}/")
        browser.click("button")
        browser.until("document.body.innerText.includes('nothing was done')")
    finally:
        server.shutdown()
        server.server_close()
    browser.visit(f"{shop.base_url}/admin/access")
    browser.find("#sessions")
