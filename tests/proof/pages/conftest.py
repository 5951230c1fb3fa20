"""Two shops and one window of Chromium for all tests of the pages."""

import pytest

from tests.proof.pages.browser import missing, open_browser, open_shop
from tests.proof.process.gateway_process import install_plugin

_FAILS = """
from gateway import ContentPolicy, Endpoint, hookimpl, usdc

class Provider:
    name = "fails"

    async def submit(self, request, job):
        raise ContentPolicy("The vendor refuses this prompt.")

@hookimpl
def register_endpoints(register, settings):
    endpoint = Endpoint(slug="fails", title="Fails", description="It fails.", model="m",
                        provider="fails", capability="text-to-image", price_units=usdc("0.02"))
    register(endpoint, Provider())
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
    """A shop on uvicorn, with an offer that fails.

    Its URL has `localhost`, because browsers create no passkeys for 127.0.0.1.
    """
    site = tmp_path_factory.mktemp("site")
    install_plugin(site, "gateway_fails", _FAILS)
    folder = tmp_path_factory.mktemp("other-shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        with open_shop(
            folder, host="localhost", server="uvicorn", contact_email="me@example.com"
        ) as opened:
            yield opened


@pytest.fixture(scope="session")
def window(_needed):
    with open_browser() as opened:
        yield opened


@pytest.fixture
def browser(window):
    yield window
    window.reset()
