"""The pages Overview and Endpoints show what the services report."""

import pytest

from gateway.concurrency.shared_answers import SharedAnswer
from gateway_operator.desk.endpoints import read_endpoints
from gateway_operator.desk.overview import read_overview
from gateway_operator.desk.wording import usdc
from gateway_operator.state import Operator
from tests.operator_history import Sale, add_sale
from tests.plugins.gateway_operator.app.operator import log_in, text_of

HOSTILE = '"><script>alert(1)</script>'


async def sell(gateway, **sale) -> str:
    write = gateway.services.store.write
    return await write(add_sale, Sale(at=gateway.services.now() - 60, **sale))


async def show(gateway, path: str) -> str:
    await log_in(gateway)
    answer = await gateway.client.get(path)
    assert answer.status_code == 200
    return await text_of(answer)


@pytest.mark.parametrize("path", ["/admin", "/admin/endpoints"])
async def test_a_stranger_sees_the_login_form_only(gateway, path):
    answer = await gateway.client.get(path)
    assert answer.status_code == 401
    assert "picture" not in await text_of(answer)


async def test_the_overview_prints_the_numbers_of_the_service(gateway):
    await sell(gateway, cost_micros=5_000)
    await sell(gateway, status="failed", reason="500")
    found = await read_overview(gateway.services.find(Operator).desk)
    money = found.money
    assert (money.sold, money.taken_units, money.back_units) == (2, 40_000, 20_000)
    assert (money.vendor_micros, money.kept_units, money.uncosted) == (5_000, 15_000, 0)
    page = await show(gateway, "/admin")
    for number in (money.taken_units, money.back_units, money.vendor_micros, money.kept_units):
        assert usdc(number) in page
    assert "1 refund to decide, 0.02 USDC" in page
    assert "Refunds 1 to decide" in page


async def test_a_cost_that_nobody_told_is_unknown_and_not_nothing(gateway):
    await sell(gateway)
    page = await show(gateway, "/admin")
    assert "Kept at most" in page
    assert "incomplete: 1 unknown" in page
    assert "cost?" in page
    (row,) = [
        one
        for one in (await read_endpoints(gateway.services.find(Operator).desk)).rows
        if one.facts.slug == "picture"
    ]
    assert (row.cost_micros, row.margin_units) == (None, None)


async def test_an_endpoint_that_is_off_sale_says_why_and_when_it_is_tried_next(gateway):
    catalog = gateway.services.catalog
    catalog["picture"].upstream.circuit.trip("AccountProblem: The key is refused.", is_account=True)
    page = await show(gateway, "/admin/endpoints")
    assert "off automatically" in page
    assert "The key is refused." in page
    assert "The next attempt is in" in page
    overview = await show(gateway, "/admin")
    assert "picture and paper: off sale" in overview
    assert overview.startswith(("Overview", "● Overview"))


async def test_an_empty_gateway_says_what_would_be_here(gateway):
    page = await show(gateway, "/admin?range=1h")
    assert "No sales since" in page
    assert "gateway buy" in page
    assert "Nothing was sold yet." in page


async def test_a_period_that_is_not_there_is_refused(gateway):
    await log_in(gateway)
    for path in ("/admin?range=5y", "/admin/endpoints?range="):
        assert (await gateway.client.get(path)).status_code == 400


async def test_what_buyers_and_vendors_wrote_stays_text(gateway):
    await sell(gateway, slug=HOSTILE, status="failed", details=HOSTILE, payer=HOSTILE)
    gateway.services.catalog["picture"].upstream.circuit.trip(HOSTILE)
    await log_in(gateway)
    for path in ("/admin", "/admin/endpoints"):
        page = await (await gateway.client.get(path)).get_data(as_text=True)
        assert "<script>alert" not in page
        assert "&lt;script&gt;" in page


async def test_a_silent_chain_leaves_the_page_and_what_was_seen_last(gateway, chain):
    before = await show(gateway, "/admin")
    assert "unknown ETH" not in before
    desk = gateway.services.find(Operator).desk
    holds = (await read_overview(desk)).facts.key("wallet").usdc.value

    async def silent(*_: object, **__: object):
        raise TimeoutError

    gateway.services.chain.call_uint = silent
    desk.last_seen._shared._by_key.clear()
    desk.shared._by_key.clear()
    found = (await read_overview(desk)).facts.key("wallet").usdc
    assert (found.value, found.problem) == (holds, "It does not answer.")
    assert found.at is not None
    assert "It does not answer." in await show(gateway, "/admin")


async def test_the_overview_names_the_sums_of_the_period_before(gateway):
    await sell(gateway)
    assert "the 24h before" not in await show(gateway, "/admin")
    store, now = gateway.services.store, gateway.services.now()
    await store.write(add_sale, Sale(at=now - 30 * 3600, units=70_000))
    gateway.services.find(Operator).desk.shared.forget()
    assert "1 sale; the 24h before: 0.07 by 1" in await show(gateway, "/admin")


async def test_endpoints_are_found_by_words_of_their_row(gateway):
    picture = '<tr id="picture">'
    await log_in(gateway)
    for typed, is_found in (("PICT", True), ("on picture sale", True), ("nothing", False)):
        answer = await gateway.client.get("/admin/endpoints", query_string={"q": typed})
        assert (picture in await answer.get_data(as_text=True)) == is_found
    assert "No matching endpoints." in await text_of(answer)


async def test_endpoints_are_green_unless_nothing_is_sold(gateway):
    green = '<i class="dot ok" aria-hidden="true"></i>picture</span>'
    services = gateway.services
    await log_in(gateway)
    pages = []
    for services.readiness.is_draining in (True, False):
        services.shared_checks = SharedAnswer(services.now, ttl_s=0)
        services.find(Operator).desk.shared.forget()
        answer = await gateway.client.get("/admin/endpoints")
        pages.append(await answer.get_data(as_text=True))
    assert [green in page for page in pages] == [False, True]
    assert [page.count("nothing is sold now") > 1 for page in pages] == [True, False]
