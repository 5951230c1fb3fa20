"""docs/examples/gateway-reviews, installed: a route, a table, a command, a condition, events."""

import asyncio
import sys
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from gateway import ContentPolicy
from gateway.cli import main
from tests.conftest import WALLET, Payer, buy, running
from tests.plugins.gateway_operator.app.operator import log_in, text_of

EXAMPLE = Path(__file__).parents[3] / "docs/examples/gateway-reviews"
METADATA = "Metadata-Version: 2.1\nName: gateway-reviews\nVersion: 1.0.0\n"
ENTRIES = """[gateway]
reviews = gateway_reviews
[gateway.commands]
reviews = gateway_reviews.commands:COMMANDS
[gateway.migrations]
reviews = gateway_reviews.migrations
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path, monkeypatch):
    info = tmp_path / "site" / "gateway_reviews-1.0.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))
    monkeypatch.syspath_prepend(str(info.parent))
    yield
    for name in [name for name in sys.modules if name.startswith("gateway_reviews")]:
        del sys.modules[name]


def test_the_entries_are_those_of_the_example():
    text = (EXAMPLE / "pyproject.toml").read_text()
    for line in ENTRIES.splitlines():
        name, _, value = line.partition(" = ")
        assert (f'{name} = "{value}"' if value else name.strip("[]")) in text


async def test_buyers_rate_what_they_bought_and_the_operator_sees_it(settings, provider, payer):
    async with running(settings, provider) as gateway:

        async def review(**body) -> int:
            return (await gateway.client.post("/reviews", json=body)).status_code

        sold = await (await buy(gateway, payer.header())).get_json()
        await gateway.wait(sold["taskId"])
        assert await review(taskId=sold["taskId"], stars=6) == 400
        assert await review(taskId="none", stars=1) == 404
        assert await review(taskId=sold["taskId"], stars=5) == 200
        assert await review(taskId=sold["taskId"], stars=1) == 200
        await log_in(gateway)
        shown = await text_of(await gateway.client.get("/admin"))
        assert "picture is rated badly" in shown
        assert "Its buyers give 1.0 of 5 stars." in shown
        guide = await (await gateway.client.get("/llms.txt")).get_data(as_text=True)
        assert "/reviews: POST a rating of a completed task here" in guide
    variables = {
        "GATEWAY_BASE_URL": settings.base_url,
        "GATEWAY_WALLET": WALLET,
        "GATEWAY_SETTLEMENT_KEY": str(settings.settlement_key),
        "GATEWAY_RPC_URLS": settings.rpc_urls[0],
        "GATEWAY_DATA_DIR": str(settings.data_dir),
    }
    listed = CliRunner().invoke(main, ["--help"], env=variables)
    assert "Show how buyers rate each endpoint." in listed.output


async def test_a_disabled_plugin_has_its_table_and_nothing_else(settings, provider):
    without = attrs.evolve(settings, plugins_disabled=("gateway_reviews",))
    async with running(without, provider) as gateway:
        assert (await gateway.client.post("/reviews", json={})).status_code == 404


async def test_completed_purchases_are_counted_from_events(settings, provider, payer):
    from gateway_reviews import ratings

    async with running(settings, provider) as gateway:
        sold = await (await buy(gateway, payer.header())).get_json()
        provider.script = [ContentPolicy("No boats.")]
        failed = await (await buy(gateway, Payer(payer.chain).header())).get_json()
        for one in (sold, failed):
            await gateway.wait(one["taskId"])
        async with asyncio.timeout(60):
            while not await gateway.services.store.read(ratings.purchases):  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.01)
        # A reader of completed tasks gets no event of the failed one.
        await gateway.services.events.hand_over()
        assert await gateway.services.store.read(ratings.purchases) == {"picture": 1}
