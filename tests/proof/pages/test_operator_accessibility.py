"""The operator's pages: axe-core finds nothing, and a phone cuts nothing off."""

import pytest

from tests.proof.pages.browser import PATIENCE_S, Browser
from tests.proof.pages.operator_desk import log_in, open_desk

# A gateway of its own and 48 page loads are too slow for the gate.
pytestmark = pytest.mark.full

PAGES = (
    "/admin?range=30d",
    "/admin/refunds",
    "/admin/refunds?state=paid",
    "/admin/tasks",
    "/admin/payments",
    "/admin/endpoints",
    "/admin/books",
    "/admin/system",
    "/admin/system/actions",
    "/admin/alarms",
    "/admin/access",
    "/admin/settings?all=1",
    "/admin/settings/name",
    "/admin/endpoints/sandbox-image/make",
    "/admin/endpoints/openai-image/price",
)
_RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then(
  ({violations}) => done(violations.flatMap(({id, nodes}) => nodes.map(
    ({html, failureSummary}) => `${id}: ${html}: ${failureSummary}`))),
  (error) => done([String(error)]),
);
"""
# Boxes that must be scrolled sideways, and elements beyond the right edge.
_CUT = """
return [...document.querySelectorAll("main .scroll, main .seg")]
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
  .map((one) => `${one.getAttribute("aria-label")}: ${one.scrollWidth} in ${one.clientWidth}`);
"""


@pytest.fixture(scope="module")
def shop(_needed, tmp_path_factory):
    with open_desk(tmp_path_factory.mktemp("desk")) as opened:
        yield opened


@pytest.fixture(scope="module")
def axe(frontend) -> str:
    return (frontend / "node_modules" / "axe-core" / "axe.min.js").read_text()


@pytest.fixture
def desk(browser, shop) -> Browser:
    log_in(browser, shop)
    return browser


def open_page(desk, shop, path: str) -> None:
    desk.visit(f"{shop.base_url}{path}")
    desk.find("main h1")


def buyer_page(desk, shop) -> str:
    """Path of the page of a buyer that the list of payments links to."""
    open_page(desk, shop, "/admin/payments")
    return desk.run(
        "return document.querySelector('a[href^=\"/admin/buyer\"]').pathname + "
        "document.querySelector('a[href^=\"/admin/buyer\"]').search"
    )


@pytest.mark.parametrize("look", ["wide", "dark", "phone"])
def test_axe_finds_nothing_on_any_page(desk, shop, axe, look):
    paths = [*PAGES, buyer_page(desk, shop)]
    if look == "dark":
        desk.darken()
    desk.resize(390 if look == "phone" else 1280)
    desk.driver.set_script_timeout(PATIENCE_S)
    found = {}
    for path in paths:
        open_page(desk, shop, path)
        desk.run(axe)
        found[path] = desk.driver.execute_async_script(_RUN)
    assert {path: rows for path, rows in found.items() if rows} == {}


def test_a_phone_cuts_nothing_off(desk, shop):
    paths = [*PAGES, buyer_page(desk, shop)]
    desk.resize(390)
    found = {}
    for path in paths:
        open_page(desk, shop, path)
        found[path] = desk.run(_CUT)
    assert {path: rows for path, rows in found.items() if rows} == {}
