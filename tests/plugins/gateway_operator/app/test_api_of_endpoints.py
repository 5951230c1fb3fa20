"""Endpoints in the JSON API: pause, price and cost, each once for one key."""

import attrs
import pytest

from gateway.settings import EndpointOverride
from tests.conftest import running
from tests.plugins.gateway_operator.app.operator import actions_of
from tests.plugins.gateway_operator.app.test_api import get, post, token_of

PATH = "/endpoints/picture"


async def _price(gateway) -> int:
    answer = await gateway.client.get("/api/x402/picture")
    return int((await answer.get_json())["accepts"][0]["maxAmountRequired"])


async def test_the_endpoints_are_the_pages(gateway):
    headers = await token_of(gateway, "read")
    rows = (await get(gateway, "/endpoints", headers))["rows"]
    (picture,) = [row for row in rows if row["facts"]["slug"] == "picture"]
    assert (picture["state"], picture["facts"]["priceUnits"]) == ("on sale", 20_000)
    assert picture["marginUnits"] is None


async def test_an_endpoint_is_paused_and_resumed(gateway):
    headers = await token_of(gateway)
    answer = await post(gateway, f"{PATH}/pause", headers)
    assert (answer.status_code, (await answer.get_json())["error"]) == (400, "reason is missing.")
    for _ in range(2):
        answer = await post(gateway, f"{PATH}/pause", headers, reason="the vendor is down")
        assert answer.status_code == 200
    paused = (await answer.get_json())["endpoint"]
    assert (paused["isPaused"], paused["sells"]) == (True, False)
    assert paused["pauseReason"] == "the vendor is down"
    assert len(await actions_of(gateway, "endpoint.pause")) == 1
    again = await post(gateway, f"{PATH}/pause", headers, "k2", reason="x")
    assert (again.status_code, (await again.get_json())["code"]) == (409, "REFUSED")
    answer = await post(gateway, f"{PATH}/resume", headers, "k3")
    assert (await answer.get_json())["endpoint"]["sells"] is True


async def test_a_price_is_changed_from_what_was_seen(gateway):
    headers = await token_of(gateway)
    body = {"priceUnits": 30_000, "seenUnits": 20_000, "reason": "dearer vendor"}
    answer = await post(gateway, f"{PATH}/price", headers, **body)
    assert (await answer.get_json())["endpoint"]["priceUnits"] == 30_000
    assert await _price(gateway) == 30_000
    stale = await post(gateway, f"{PATH}/price", headers, "k2", **body)
    assert (stale.status_code, (await stale.get_json())["code"]) == (409, "STALE_FORM")
    back = {"seenUnits": 30_000, "reason": "as before"}
    answer = await post(gateway, f"{PATH}/price", headers, "k3", **back)
    assert (await answer.get_json())["endpoint"]["priceUnits"] == 20_000


async def test_a_token_sets_no_price_below_the_cost(gateway):
    headers = await token_of(gateway)
    answer = await post(gateway, f"{PATH}/cost", headers, costMicros=15_000)
    found = (await answer.get_json())["endpoint"]
    assert (found["costMicros"], found["isCostSet"]) == (15_000, True)
    body = {"priceUnits": 10_000, "seenUnits": 20_000, "reason": "a sale"}
    answer = await post(gateway, f"{PATH}/price", headers, "k2", **body)
    refused = await answer.get_json()
    assert (answer.status_code, refused["code"]) == (409, "REFUSED")
    assert "allow_loss = true" in refused["error"]
    assert await _price(gateway) == 20_000


async def test_a_loss_that_is_allowed_wants_the_password_all_the_same(settings, provider):
    allowing = attrs.evolve(settings, endpoints={"picture": EndpointOverride(allow_loss=True)})
    async with running(allowing, provider) as gateway:
        headers = await token_of(gateway)
        await post(gateway, f"{PATH}/cost", headers, costMicros=15_000)
        body = {"priceUnits": 10_000, "seenUnits": 20_000, "reason": "a sale"}
        answer = await post(gateway, f"{PATH}/price", headers, "k2", **body)
        found = (answer.status_code, (await answer.get_json())["code"])
        assert found == (403, "NEEDS_FRESH_LOGIN")
        assert await _price(gateway) == 20_000


@pytest.mark.parametrize("what", ["pause", "resume", "price", "cost", "try"])
async def test_an_endpoint_that_is_not_there_is_said_so(gateway, what):
    headers = await token_of(gateway)
    body = {
        "pause": {"reason": "x"},
        "price": {"priceUnits": 1, "seenUnits": 1, "reason": "x"},
    }.get(what, {})
    answer = await post(gateway, f"/endpoints/nothing/{what}", headers, **body)
    assert answer.status_code in (400, 404)


async def test_a_vendor_is_tried(gateway):
    headers = await token_of(gateway)
    answer = await post(gateway, f"{PATH}/try", headers)
    assert await answer.get_json() == {"works": True, "problem": None}
    again = await post(gateway, f"{PATH}/try", headers, "k2")
    assert again.status_code == 409


# -- below the cost in two steps


async def test_a_token_lowers_no_cost_and_so_reaches_no_price_below_it(settings, provider):
    costing = attrs.evolve(settings, endpoints={"picture": EndpointOverride(cost="0.015")})
    async with running(costing, provider) as gateway:
        headers = await token_of(gateway)
        for number, body in enumerate(({"costMicros": 0}, {"costMicros": 14_999})):
            answer = await post(gateway, f"{PATH}/cost", headers, f"a{number}", **body)
            found = (answer.status_code, (await answer.get_json())["code"])
            assert found == (403, "NEEDS_FRESH_LOGIN")
        raised = await post(gateway, f"{PATH}/cost", headers, "b", costMicros=16_000)
        assert raised.status_code == 200
        # Without a number the cost of the settings applies, which is lower.
        assert (await post(gateway, f"{PATH}/cost", headers, "c")).status_code == 403
        body = {"priceUnits": 1, "seenUnits": 20_000, "reason": "a sale"}
        assert (await post(gateway, f"{PATH}/price", headers, "d", **body)).status_code == 409
        assert await _price(gateway) == 20_000


async def test_a_token_forgets_no_cost_that_was_set(gateway):
    headers = await token_of(gateway)
    await post(gateway, f"{PATH}/cost", headers, costMicros=15_000)
    assert (await post(gateway, f"{PATH}/cost", headers, "k2")).status_code == 403


async def test_a_token_raises_no_cost_above_a_price_that_it_chose(gateway):
    headers = await token_of(gateway)
    body = {"priceUnits": 1, "seenUnits": 20_000, "reason": "a sale"}
    assert (await post(gateway, f"{PATH}/price", headers, **body)).status_code == 200
    answer = await post(gateway, f"{PATH}/cost", headers, "k2", costMicros=15_000)
    assert (answer.status_code, (await answer.get_json())["code"]) == (403, "NEEDS_FRESH_LOGIN")
