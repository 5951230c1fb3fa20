"""Every price of an endpoint is changed from its page: by resolution, by pages, per page."""

import pytest

from gateway import Choice, Endpoint, hookimpl
from gateway.domain import PriceStep
from gateway.store.endpoint_changes import find_steps
from tests.conftest import ScriptedProvider, running
from tests.plugins.gateway_operator.app.operator import actions_of, log_in, post, text_of
from tests.plugins.gateway_operator.app.test_endpoint_changes import ask

PATH = "/admin/endpoints/sized"
API = "/admin/api/v1/endpoints/sized"


class Sized:
    """Sells at 0.02, 0.04 at 2K and 0.08 at 4K, where it costs 0.05."""

    __name__ = "sized-plugin"

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        sizes = ("1K", "2K", "4K")
        steps = (
            PriceStep(price_units=40_000, resolution="2K", cost_micros=20_000),
            PriceStep(price_units=80_000, resolution="4K", cost_micros=50_000),
        )
        endpoint = Endpoint(
            slug="sized",
            title="A picture",
            description="One pixel.",
            model="pixel-1",
            provider="scripted",
            capability="text-to-image",
            price_units=20_000,
            price_steps=steps,
            cost_micros=10_000,
            resolution=Choice(values=sizes, default="1K"),
            least_pixels=dict.fromkeys(sizes, 1),
        )
        register(endpoint, ScriptedProvider())


@pytest.fixture
async def gateway(settings, provider, clock):
    async with running(settings, provider, more=[Sized()], now=clock) as started:
        await log_in(started)
        yield started


def prices(gateway):
    endpoint = gateway.services.catalog["sized"].endpoint
    return [endpoint.price_units, *(step.price_units for step in endpoint.price_steps)]


async def test_one_step_is_changed_and_the_others_follow_the_first(gateway):
    page = await (await gateway.client.get(f"{PATH}/price")).get_data(as_text=True)
    assert 'value="0.02"' in page
    assert "Now 0.04. Empty: it follows the price above." in page
    words, fields = await ask(gateway, f"{PATH}/price/ask", price="0.03", more1="0.10")
    assert "Sell sized for 0.03 / 0.06 / 0.10 USDC?" in words.replace("0.1 ", "0.10 ")
    assert "4K 0.1 USDC, until now 0.08" in words.replace("0.10", "0.1")
    assert prices(gateway) == [20_000, 40_000, 80_000]
    answer = await post(gateway, f"{PATH}/price", **fields, reason="4K is dear")
    assert answer.status_code == 303
    assert prices(gateway) == [30_000, 60_000, 100_000]
    (action,) = await actions_of(gateway, "endpoint.price")
    assert '"4K": 100000' in str(action.after)
    # A buyer pays the step's price.
    quote = await gateway.client.post("/api/x402/sized", json={"prompt": "a", "resolution": "4K"})
    assert (await quote.get_json())["accepts"][0]["amount"] == "100000"
    page = await (await gateway.client.get(f"{PATH}/price")).get_data(as_text=True)
    assert 'name="more1" value="0.1"' in page.replace("0.10", "0.1")
    # Empty fields restore the file's prices.
    _, fields = await ask(gateway, f"{PATH}/price/ask", price="")
    await post(gateway, f"{PATH}/price", **fields, reason="back")
    assert prices(gateway) == [20_000, 40_000, 80_000]


async def test_the_previous_release_can_read_the_price(gateway):
    """It reads a number from the table, and fails for anything else."""
    _, fields = await ask(gateway, f"{PATH}/price/ask", price="0.03", more1="0.10")
    await post(gateway, f"{PATH}/price", **fields, reason="4K is dear")

    def read(db):
        return db.execute("SELECT id, field, value FROM endpoint_overrides").fetchall()

    ((number, field, value),) = await gateway.services.store.sum(read)
    assert (field, value) == ("price", "30000")
    assert await gateway.services.store.sum(find_steps) == {number: '{"4K": 100000}'}
    # The next price has none that was set apart, and 402s of before keep theirs.
    _, fields = await ask(gateway, f"{PATH}/price/ask", price="0.05")
    assert (await post(gateway, f"{PATH}/price", **fields, reason="all")).status_code == 303
    assert prices(gateway) == [50_000, 100_000, 200_000]
    change = gateway.services.catalog["sized"].change
    assert [one.more_units for one in change.earlier_prices] == [{"4K": 100_000}, {}]


async def test_a_step_below_its_cost_is_named_and_refused(gateway):
    words, fields = await ask(gateway, f"{PATH}/price/ask", price="0.02", more1="0.04")
    assert "This is below the cost. 4K: sold for 0.04 USDC, costs 0.05 USD." in words
    answer = await post(gateway, f"{PATH}/price", **fields, reason="a gift")
    assert answer.status_code == 409
    assert prices(gateway) == [20_000, 40_000, 80_000]


async def test_a_step_that_changed_meanwhile_makes_the_form_stale(gateway):
    _, fields = await ask(gateway, f"{PATH}/price/ask", price="0.02", more1="0.09")
    _, others = await ask(gateway, f"{PATH}/price/ask", price="0.02", more0="0.05")
    await post(gateway, f"{PATH}/price", **others, reason="first")
    answer = await post(gateway, f"{PATH}/price", **fields, reason="second")
    assert answer.status_code == 409
    assert "sized costs 0.02 / 0.05 / 0.08 USDC by now" in await text_of(answer)
    assert prices(gateway) == [20_000, 50_000, 80_000]


async def test_what_is_no_price_is_refused(gateway):
    for form in (
        {"price": "", "more0": "0.05"},
        {"price": "0.02", "more0": "a"},
        {"price": "0.02", "more0": "0"},
    ):
        assert (await post(gateway, f"{PATH}/price/ask", **form)).status_code == 400
    for seen in ("", "a", "20000 a", "20000  1"):
        answer = await post(gateway, f"{PATH}/price", price="0.02", seen=seen, reason="a")
        assert answer.status_code == 400
    assert prices(gateway) == [20_000, 40_000, 80_000]


async def test_the_api_sets_steps_by_name(gateway):
    async def send(key, **body):
        headers = {"Idempotency-Key": key, "Sec-Fetch-Site": "same-origin"}
        body = {"seenUnits": 20_000, "reason": "a", **body}
        return await gateway.client.post(f"{API}/price", json=body, headers=headers)

    answer = await send("a", priceUnits=20_000, moreUnits={"2K": 45_000})
    assert (await answer.get_json())["endpoint"]["moreUnits"] == {"2K": 45_000, "4K": 80_000}
    for number, body in enumerate(
        ({"priceUnits": 20_000, "moreUnits": {"8K": 1}}, {"moreUnits": {"2K": 1}}, {"moreUnits": 5})
    ):
        assert (await send(f"wrong{number}", **body)).status_code == 400
    assert prices(gateway) == [20_000, 45_000, 80_000]
