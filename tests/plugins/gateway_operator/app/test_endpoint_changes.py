"""The page pauses, resumes, prices and costs endpoints, each after a confirmation."""

import re

from tests.cases import each
from tests.plugins.gateway_operator.app.operator import (
    RIGHT,
    SAME,
    actions_of,
    log_in,
    post,
    text_of,
)

PATH = "/admin/endpoints/picture"


async def ask(gateway, path: str, **form) -> tuple[str, dict]:
    """Text of a confirmation, and the hidden fields of its form."""
    answer = await (post(gateway, path, **form) if form else gateway.client.get(path))
    assert answer.status_code == 200
    page = await answer.get_data(as_text=True)
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    return await text_of(answer), fields


async def price_of(gateway) -> int:
    return gateway.services.catalog["picture"].endpoint.price_units


async def test_a_pause_asks_for_a_reason_sells_nothing_and_is_written_down(gateway):
    await log_in(gateway)
    words, fields = await ask(gateway, f"{PATH}/pause")
    assert "Pause picture?" in words
    assert "they will be finished" in words
    refused = await post(gateway, f"{PATH}/pause", **fields, reason=" ")
    assert refused.status_code == 400
    answer = await post(gateway, f"{PATH}/pause", **fields, reason="too slow")
    assert answer.headers["Location"] == "/admin/endpoints?done=paused#picture"
    assert (await gateway.client.post("/api/x402/picture", json={})).status_code != 402
    page = await text_of(await gateway.client.get("/admin/endpoints?done=paused"))
    assert "paused by you" in page
    assert "too slow" in page
    (action,) = await actions_of(gateway, "endpoint.pause")
    assert (action.subject, action.reason) == ("picture", "too slow")


async def test_the_same_form_twice_is_one_action(gateway):
    await log_in(gateway)
    _, fields = await ask(gateway, f"{PATH}/pause")
    for _ in range(2):
        answer = await post(gateway, f"{PATH}/pause", **fields, reason="once")
        assert answer.status_code == 303
    assert len(await actions_of(gateway, "endpoint.pause")) == 1


async def test_a_paused_endpoint_is_resumed(gateway):
    await log_in(gateway)
    await post(gateway, f"{PATH}/pause", reason="a look")
    words, fields = await ask(gateway, f"{PATH}/resume")
    assert "Paused because a look" in words
    await post(gateway, f"{PATH}/resume", **fields)
    assert (await gateway.client.post("/api/x402/picture", json={"prompt": "a"})).status_code == 402


async def test_another_price_is_shown_with_what_it_leaves_before_it_counts(gateway):
    await log_in(gateway)
    words, fields = await ask(gateway, f"{PATH}/price/ask", price="0.05")
    assert "Sell picture for 0.05 USDC?" in words
    assert "Price now 0.02 USDC" in words
    assert "Cost of one unknown" in words
    assert await price_of(gateway) == 20_000
    await post(gateway, f"{PATH}/price", **fields, reason="dearer")
    assert await price_of(gateway) == 50_000
    # An empty field restores the settings file's price.
    _, fields = await ask(gateway, f"{PATH}/price/ask", price="")
    await post(gateway, f"{PATH}/price", **fields, reason="back")
    assert await price_of(gateway) == 20_000


async def test_a_price_that_changed_meanwhile_is_a_stale_form(gateway):
    await log_in(gateway)
    _, first = await ask(gateway, f"{PATH}/price/ask", price="0.05")
    _, second = await ask(gateway, f"{PATH}/price/ask", price="0.06")
    await post(gateway, f"{PATH}/price", **first, reason="a")
    answer = await post(gateway, f"{PATH}/price", **second, reason="b")
    assert answer.status_code == 409
    assert await price_of(gateway) == 50_000


async def test_a_price_below_the_cost_warns_and_is_said_to_lose(gateway):
    await log_in(gateway)
    _, fields = await ask(gateway, f"{PATH}/cost")
    answer = await post(gateway, f"{PATH}/cost", **fields, cost="0.03")
    assert answer.status_code == 303
    words, fields = await ask(gateway, f"{PATH}/price/ask", price="0.01")
    assert "below the cost. 1K: sold for 0.01 USDC, costs 0.03 USD." in words
    page = await text_of(await gateway.client.get("/admin/endpoints"))
    assert "set by you" in page
    assert "\u22120.01" in page
    overview = await text_of(await gateway.client.get("/admin"))
    assert "picture is sold below its cost" in overview


async def test_a_session_that_is_not_fresh_reaches_no_price_below_the_cost(gateway, clock):
    await log_in(gateway)
    assert (await post(gateway, f"{PATH}/cost", cost="0.015")).status_code == 303
    clock.offset_s += 601
    for typed in ("0", "0.014", ""):
        answer = await post(gateway, f"{PATH}/cost", cost=typed)
        assert answer.status_code == 403
        assert "Confirm that it is you" in await text_of(answer)
    price = {"price": "0.000001", "seen": "20000", "reason": "a sale"}
    assert (await post(gateway, f"{PATH}/price", **price)).status_code == 409
    assert (await post(gateway, f"{PATH}/cost", cost="0", password=RIGHT)).status_code == 303


@each("typed", ["-1", "0", "cheap", "1e3", "0.0000001", "9" * 20, "\u0661"])
async def test_a_price_that_is_none_gets_a_sentence(gateway, typed):
    await log_in(gateway)
    answer = await post(gateway, f"{PATH}/price/ask", price=typed)
    assert answer.status_code == 400
    assert await price_of(gateway) == 20_000


async def test_no_change_without_a_session_or_from_elsewhere(gateway):
    verbs = ("pause", "resume", "price", "price/ask", "cost", "try")
    for verb in verbs:
        answer = await post(gateway, f"{PATH}/{verb}", reason="x", price="0.05", seen="20000")
        assert answer.status_code == 401
    await log_in(gateway)
    for verb in verbs:
        headers = SAME | {"Sec-Fetch-Site": "cross-site"}
        form = {"reason": "x", "price": "0.05", "seen": "20000"}
        answer = await gateway.client.post(f"{PATH}/{verb}", form=form, headers=headers)
        assert answer.status_code == 403
    assert await price_of(gateway) == 20_000
    assert await actions_of(gateway, "endpoint.pause") == []


async def test_an_endpoint_that_is_not_there_gets_a_sentence(gateway):
    await log_in(gateway)
    for verb in ("pause", "resume", "price", "cost"):
        answer = await gateway.client.get(f"/admin/endpoints/nothing/{verb}")
        assert answer.status_code in (400, 404)
        assert "endpoint" in await text_of(answer)
