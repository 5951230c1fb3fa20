"""Every door's words about the four built-in capabilities, compared with `recorded/`.

A changed word changes a file there. To write them again, before reading the diff:

    UPDATE_SNAPSHOTS=1 .venv/bin/python -m pytest tests/gateway/web/test_recorded.py
"""

import os
from pathlib import Path

import pytest

from tests.bundled_endpoints import bundled_endpoints
from tests.conftest import running
from tests.gateway.web import recorder
from tests.gateway.web.recorder import OFFERS, Recorded

_FOLDER = Path(__file__).parent / "recorded"


@pytest.fixture
async def shop(settings):
    async with running(settings, more=[Recorded()]) as started:
        yield started


def compare(name: str, text: str) -> None:
    path = _FOLDER / name
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text)
    assert text == path.read_text()


async def test_documents_pages_and_answers_are_as_recorded(shop):
    for name, text in (await recorder.pages(shop)).items():
        compare(name, text)
    compare("challenges.json", await recorder.challenges(shop))
    compare("answers.txt", await recorder.answers(shop))
    tools = await _list_tools(shop)
    compare("tools.json", recorder.dump(tools))


async def _list_tools(shop) -> list:
    from gateway_mcp.tools import list_tools

    return list_tools(shop.services.catalog, shop.services.settings.chain)


async def test_a_front_page_of_many_offers_is_as_recorded(settings):
    async with running(settings, more=[Recorded(more=6)]) as many:
        compare("home-many.html", (await recorder.pages(many))["home.html"])


def test_descriptions_and_requests_are_as_recorded():
    found = {slug: recorder.describe(offer) for slug, offer in OFFERS.items()}
    compare("described.json", recorder.dump(found))
    compare("files.json", recorder.files())


def test_bundled_offers_are_described_as_recorded():
    compare("bundled.txt", recorder.digests(bundled_endpoints().values()))
