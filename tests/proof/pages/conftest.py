"""Three shops, one window of Chromium and one copy of frontend/ for all tests of the pages."""

import contextlib

import pytest

from tests.proof.pages.browser import missing, open_browser, open_gateway, open_shop
from tests.proof.pages.building import copy_frontend
from tests.proof.process.gateway_process import install_plugin

# An offer that fails, and enough others for a page of rows.
_FAILS = """
from gateway import Choice, ContentPolicy, Endpoint, PriceStep, hookimpl, usdc

class Provider:
    name = "fails"

    async def submit(self, request, job):
        raise ContentPolicy("The vendor refuses this prompt.")

@hookimpl
def register_endpoints(register, settings):
    endpoint = Endpoint(slug="fails", title="Fails", description="It fails.", model="m",
                        provider="fails", capability="text-to-image", price_units=usdc("0.02"))
    provider = Provider()
    register(endpoint, provider)
    for number in range(44):
        kind = ("text-to-image", "image-editing", "document-parsing")[number % 3]
        steps = (PriceStep(price_units=usdc("0.24"), resolution="4K"),)
        offer = Endpoint(
            slug=f"offer-{number}", title=f"Model {number} of a vendor",
            description="It makes one.",
            model=f"vendor/model-{number}", provider="fails", capability=kind,
            price_units=usdc("0.08"), price_steps=() if number % 3 == 2 else steps,
            resolution=Choice() if number % 3 == 2 else Choice(values=("1K", "4K"), default="1K"),
            required_fields=("prompt", *(("fileBase64", "fileName") if number % 3 else ())),
            file_extensions=() if number % 3 == 0 else (".png",),
        )
        register(offer, provider)
"""


@pytest.fixture(scope="session")
def _needed():
    lacks = missing()
    if lacks:
        pytest.skip(lacks)


@pytest.fixture(scope="session")
def shop(_needed, tmp_path_factory):
    with open_shop(tmp_path_factory.mktemp("shop")) as opened:
        yield opened


@pytest.fixture(scope="session")
def other_shop(_needed, tmp_path_factory):
    """A shop on uvicorn, with an offer that fails among 49.

    Its URL has `localhost`, because browsers create no passkeys for 127.0.0.1.
    """
    site = tmp_path_factory.mktemp("site")
    install_plugin(site, "gateway_fails", _FAILS)
    folder = tmp_path_factory.mktemp("other-shop")
    facts = {"server": "uvicorn", "contact_email": "me@example.com"}
    with contextlib.ExitStack() as stack:
        # The gateway takes this path along. Later tests of this process must not see the plugin.
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(site))
            opened = stack.enter_context(open_shop(folder, host="localhost", **facts))
        yield opened


@pytest.fixture(scope="session")
def lone_shop(shop, tmp_path_factory):
    """A shop of one offer, on the chain of `shop`."""
    folder = tmp_path_factory.mktemp("lone-shop")
    with open_gateway(folder, shop.chain, sandbox="false") as opened:
        yield opened


@pytest.fixture(scope="session")
def frontend(tmp_path_factory):
    """A copy of frontend/ with its packages; skips without Node or the registry."""
    return copy_frontend(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="session")
def axe(frontend) -> str:
    """The script of axe-core."""
    return (frontend / "node_modules" / "axe-core" / "axe.min.js").read_text()


@pytest.fixture(scope="session")
def window(_needed):
    with open_browser() as opened:
        yield opened


@pytest.fixture
def browser(window):
    yield window
    window.reset()
