"""One shop and one window of Chromium for all tests of a module."""

import pytest

from tests.proof.pages.browser import missing, open_browser, open_shop
from tests.third_party_plugins import install

__all__ = ["install"]


@pytest.fixture(scope="module", autouse=True)
def _needed():
    lacks = missing()
    if lacks:
        pytest.skip(lacks)


@pytest.fixture(scope="module")
def shop(_needed, tmp_path_factory):
    with open_shop(tmp_path_factory.mktemp("shop")) as opened:
        yield opened


@pytest.fixture(scope="module")
def window(_needed):
    with open_browser() as opened:
        yield opened


@pytest.fixture
def browser(window):
    yield window
    window.reset()
