"""The operator names a fallback on the endpoint's page; it makes new orders in an outage."""

import asyncio
import base64

import attrs
import pytest

from gateway import GenerationRequest, Transient, hookimpl
from gateway.contracts.store import EndpointChange
from gateway.errors import ExecutionError
from gateway.web.bodies import GenerationBody
from gateway.web.validation import check_request
from gateway_operator.desk.facts import read_facts
from gateway_operator.desk.fallbacks import describe_fallback
from gateway_operator.state import operator_of
from tests.conftest import ScriptedProvider, buy, nothing_charged, running
from tests.gateway.methods.tickets import TicketPlugin, Tickets, bought, pay, refused
from tests.plugins.gateway_operator.app.operator import RIGHT, actions_of, log_in, post, text_of
from tests.plugins.gateway_operator.app.test_api import post as post_to_api
from tests.plugins.gateway_operator.app.test_api import token_of
from tests.plugins.gateway_operator.app.test_endpoint_changes import ask

PATH = "/admin/endpoints/picture"


class SparePlugin:
    """Sells the picture again, by another vendor."""

    __name__ = "spare-plugin"
    cost_micros: int | None = 15_000
    # A capability that no plugin declares, to sell two more endpoints with; empty: none.
    undeclared = ""

    def __init__(self):
        self.provider = ScriptedProvider()
        self.provider.name = "other"

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        from tests.conftest import ScriptedPlugin

        def register_spare(endpoint, _):
            if endpoint.slug == "picture":
                spare = attrs.evolve(
                    endpoint,
                    slug="spare",
                    model="other-1",
                    provider="other",
                    cost_micros=self.cost_micros,
                )
                register(spare, self.provider)
                for slug in ("song", "song-spare") if self.undeclared else ():
                    register(
                        attrs.evolve(spare, slug=slug, capability=self.undeclared), self.provider
                    )

        ScriptedPlugin(None).register_endpoints(register_spare, settings)


@pytest.fixture
def spare():
    return SparePlugin()


@pytest.fixture
async def gateway(settings, provider, spare, chain, clock):
    async with running(settings, provider, more=[spare], now=clock) as started:
        started.chain = chain
        await log_in(started)
        yield started


async def choose(gateway, fallback="spare"):
    _, fields = await ask(gateway, f"{PATH}/fallback")
    answer = await post(gateway, f"{PATH}/fallback", **fields, fallback=fallback, password=RIGHT)
    assert answer.status_code == 303, await text_of(answer)


def fail(gateway, slug="picture"):
    registered = gateway.services.catalog[slug]
    registered.upstream.circuit.trip("status 401: wrong key", is_account=True)


async def paid_for(gateway, payer, units=20_000):
    answer = await buy(gateway, payer.header(units))
    assert answer.status_code == 200, await answer.get_data(as_text=True)
    return await gateway.wait((await answer.get_json())["taskId"])


async def test_the_password_is_asked_and_the_choice_is_written_down_and_shown(gateway, clock):
    words, fields = await ask(gateway, f"{PATH}/fallback")
    assert "One of: spare." in words
    clock.offset_s += 3600
    await log_in(gateway)
    clock.offset_s += 1800
    refused = await post(gateway, f"{PATH}/fallback", **fields, fallback="spare")
    assert refused.status_code != 303
    assert await actions_of(gateway, "endpoint.fallback") == []
    await choose(gateway)
    (action,) = await actions_of(gateway, "endpoint.fallback")
    assert (action.subject, action.after) == ("picture", {"fallback": "spare"})
    assert "Fallback: spare" in await text_of(await gateway.client.get("/admin/endpoints"))
    await choose(gateway, "")
    assert gateway.services.catalog["picture"].change.fallback is None


async def test_a_token_alone_chooses_no_fallback(gateway):
    headers = await token_of(gateway)
    answer = await post_to_api(gateway, "/endpoints/picture/fallback", headers, fallback="spare")
    assert (answer.status_code, (await answer.get_json())["code"]) == (403, "NEEDS_FRESH_LOGIN")
    assert await actions_of(gateway, "endpoint.fallback") == []


async def test_a_fallback_of_unknown_cost_or_of_the_same_account_is_doubted(
    settings, provider, spare, clock
):
    spare.provider, spare.cost_micros = provider, None
    async with running(settings, provider, more=[spare], now=clock) as gateway:
        await log_in(gateway)
        words, _ = await ask(gateway, f"{PATH}/fallback")
        assert "The same vendor's account as that of picture serves spare." in words
        await choose(gateway)
        for page in ("/admin/endpoints", "/admin"):
            shown = await text_of(await gateway.client.get(page))
            assert "The cost of spare is not known: it may be above the price." in shown
            assert "spare has the same vendor's account, so both may fail at once." in shown


@pytest.mark.parametrize("wrong", ["paper", "picture", "missing"])
async def test_an_endpoint_that_does_not_fit_is_refused(gateway, wrong):
    answer = await post(gateway, f"{PATH}/fallback", fallback=wrong, password=RIGHT)
    assert answer.status_code == 400
    assert await actions_of(gateway, "endpoint.fallback") == []


async def test_an_order_in_an_outage_is_made_and_shown_as_by_the_fallback(
    gateway, provider, spare, payer
):
    assert "model" not in await paid_for(gateway, payer)
    await choose(gateway)
    # The task names its maker.
    assert (await paid_for(gateway, payer))["model"] == "pixel-1"
    fail(gateway)
    manifest = await (await gateway.client.get("/.well-known/agent-manifest.json")).get_json()
    offer = next(one for one in manifest["availableEndpoints"] if one["slug"] == "picture")
    assert (offer["model"], offer["provider"], offer["price"]) == ("other-1", "other", 0.02)
    words = "In an outage of its provider, other-1 by other may make it."
    listed = await (await gateway.client.get("/.well-known/x402.json")).get_data(as_text=True)
    assert listed.count(words) == 1
    asked = await buy(gateway, None)
    assert words in base64.b64decode(asked.headers["PAYMENT-REQUIRED"]).decode()
    # A buyer of x402 v1 reads no header.
    assert all(words in one["description"] for one in (await asked.get_json())["accepts"])
    task = await paid_for(gateway, payer)
    assert (task["status"], task["slug"], task["model"]) == ("completed", "picture", "other-1")
    assert (len(provider.requests), len(spare.provider.requests)) == (2, 1)
    words = await text_of(await gateway.client.get("/admin/endpoints"))
    assert "Made by spare since" in words
    assert "picture is made by spare" in await text_of(await gateway.client.get("/admin"))
    shown = await text_of(await gateway.client.get(f"/admin/tasks/{task['taskId']}"))
    assert "spare, its fallback, model other-1" in shown
    assert await sold(gateway) == (3, 0)


async def test_an_order_in_work_is_in_the_sums_of_the_bought_endpoint(gateway, spare, payer):
    await choose(gateway)
    fail(gateway)
    begun, done = asyncio.Event(), asyncio.Event()

    async def hold(request, job):
        begun.set()
        await done.wait()

    spare.provider.script = [hold]
    answer = await buy(gateway, payer.header())
    await begun.wait()
    assert await sold(gateway) == (1, 0)
    for slug in ("picture", "spare"):
        listed = await text_of(await gateway.client.get(f"/admin/tasks?slug={slug}"))
        assert "processing" in listed
        # A pause of either tells of it.
        assert (
            "1; they will be finished" in (await ask(gateway, f"/admin/endpoints/{slug}/pause"))[0]
        )
    done.set()
    await gateway.wait((await answer.get_json())["taskId"])
    operator_of(gateway.services).desk.shared.forget()
    assert await sold(gateway) == (1, 0)


async def sold(gateway):
    found = await (await gateway.client.get("/admin/api/v1/endpoints")).get_json()
    counts = {one["facts"]["slug"]: one["sums"]["sold"] for one in found["rows"]}
    return counts["picture"], counts["spare"]


async def test_ready_stops_no_sale_that_a_fallback_makes(gateway):
    await choose(gateway)
    fail(gateway)
    rows = (await (await gateway.client.get("/admin/ready")).get_json())["checks"]
    stops = {row["name"]: row["stops"] for row in rows}
    assert stops["provider scripted"] == "paper"
    # A part that asks without a request, such as the page's amounts, may sell too.
    gateway.services.readiness.check_serving("picture")


async def test_a_request_is_made_only_by_the_provider_that_has_checked_it(gateway, payer, chain):
    await choose(gateway)
    services = gateway.services
    own = services.quote(services.catalog["picture"].endpoint)
    fail(gateway)
    spares = services.quote(services.catalog["picture"].endpoint)
    assert (own.maker, spares.maker.slug) == (None, "spare")
    request = GenerationRequest(prompt="a boat")
    async with nothing_charged(gateway, chain):
        with pytest.raises(ExecutionError, match="just changed"):
            await services.payments.accept_x402(own, request, payer.header())


async def test_a_fallback_that_is_chosen_while_a_request_is_checked_does_not_make_it(gateway):
    services = gateway.services
    seen = services.catalog["picture"]
    fail(gateway)
    await choose(gateway)
    body = GenerationBody(prompt="a boat")
    with pytest.raises(ExecutionError, match="just changed"):
        await check_request(services, body, seen, "192.0.2.1")
    now = services.catalog["picture"]
    assert (await check_request(services, body, now, "192.0.2.1")).prompt == "a boat"


async def test_an_endpoint_whose_results_nothing_checks_is_no_fallback(
    settings, provider, spare, clock
):
    spare.undeclared = "text-to-song"
    async with running(settings, provider, more=[spare], now=clock) as gateway:
        await log_in(gateway)
        wrong = {"fallback": "song-spare", "password": RIGHT}
        answer = await post(gateway, "/admin/endpoints/song/fallback", **wrong)
        assert answer.status_code == 400
        assert "No plugin declares the capability text-to-song" in await text_of(answer)
        words, _ = await ask(gateway, "/admin/endpoints/song/fallback")
        assert "No endpoint can make every order of this one." in words
        catalog = gateway.services.catalog
        one = attrs.evolve(
            catalog["song"], change=EndpointChange(changed_at=1.0, fallback="song-spare")
        )
        assert describe_fallback(catalog, one).problem == "nothing checks its results"


async def test_nothing_is_sold_while_both_fail(gateway, payer, chain):
    await choose(gateway)
    fail(gateway)
    fail(gateway, "spare")
    async with nothing_charged(gateway, chain):
        assert (await buy(gateway, payer.header())).status_code == 500


async def test_a_fallback_that_costs_more_by_now_sells_nothing_and_is_a_condition(
    gateway, payer, chain
):
    await choose(gateway)
    fail(gateway)
    _, fields = await ask(gateway, f"{PATH}/price/ask", price="0.014")
    await post(gateway, f"{PATH}/price", **fields, reason="cheaper")
    async with nothing_charged(gateway, chain):
        assert (await buy(gateway, payer.header(14_000))).status_code == 500
    words = await text_of(await gateway.client.get("/admin"))
    assert "spare cannot make the orders of picture" in words


async def test_an_earlier_price_below_the_fallbacks_cost_takes_no_signature(
    gateway, payer, chain, spare
):
    await choose(gateway)
    for price in ("0.014", "0.02"):
        _, fields = await ask(gateway, f"{PATH}/price/ask", price=price)
        await post(gateway, f"{PATH}/price", **fields, reason="a try")
    # While its own vendor works, the price of a moment ago is good.
    assert (await paid_for(gateway, payer, 14_000))["status"] == "completed"
    fail(gateway)
    async with nothing_charged(gateway, chain):
        assert (await buy(gateway, payer.header(14_000))).status_code == 402
    # What is taken already buys, at a loss: an authorization that somebody else submitted, too.
    signed = payer.authorization(14_000)
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    chain.send_transaction(payer.account.key, chain.usdc, signed.call(signature))
    again = payer.header(14_000, nonce=signed.nonce, valid_before=signed.valid_before)
    answer = await buy(gateway, again)
    assert answer.status_code == 200
    await gateway.wait((await answer.get_json())["taskId"])
    body = {"slug": "picture", "prompt": "a boat", "txHash": payer.transfer(14_000)}
    answer = await gateway.client.post("/api/proxy-generate", json=body)
    assert answer.status_code == 200
    await gateway.wait((await answer.get_json())["taskId"])
    assert len(spare.provider.requests) == 2


async def test_a_proof_below_the_fallbacks_cost_is_not_taken_at_an_earlier_price(
    settings, provider, spare, clock
):
    tickets = Tickets()
    plugins = [spare, TicketPlugin(tickets)]
    async with running(settings, provider, more=plugins, now=clock) as gateway:
        await log_in(gateway)
        await choose(gateway)
        for price in ("0.014", "0.02"):
            _, fields = await ask(gateway, f"{PATH}/price/ask", price=price)
            await post(gateway, f"{PATH}/price", **fields, reason="a try")
        fail(gateway)
        assert await refused(gateway, "a:14000") == "insufficient_funds"
        assert tickets.asked == []
        task = await gateway.wait(await bought(gateway, "b:15000"))
        assert (task["model"], task["payment"]["amount"]) == ("other-1", 0.015)


@pytest.mark.parametrize("flow", ["x402", "transfer", "ticket"])
async def test_each_way_to_pay_asks_for_the_maker_just_before_it_writes(
    settings, provider, spare, chain, payer, clock, flow
):
    plugins, asked = [spare, TicketPlugin(Tickets())], []

    def change(*order):
        asked.append(order)
        raise ExecutionError("It has just changed. Try again.")

    async with running(settings, provider, more=plugins, now=clock) as gateway:
        gateway.chain = chain
        await log_in(gateway)
        await choose(gateway)
        fail(gateway)
        gateway.services.payments.check_maker = change
        body = {"slug": "picture", "prompt": "a boat"}
        tx_hash = payer.transfer(20_000) if flow == "transfer" else ""
        async with nothing_charged(gateway, chain):
            if flow == "x402":
                answer = await buy(gateway, payer.header())
            elif flow == "ticket":
                answer = await pay(gateway)
            else:
                sent = body | {"txHash": tx_hash}
                answer = await gateway.client.post("/api/proxy-generate", json=sent)
            assert answer.status_code == 500
        (order,) = asked
        assert order == ("picture", "spare")
        assert "nothing was charged" in (await answer.get_json())["error"]


async def test_a_pause_of_the_endpoint_stops_its_sales_whatever_the_fallback(gateway, payer, chain):
    await choose(gateway)
    fail(gateway)
    await post(gateway, f"{PATH}/pause", reason="a look")
    async with nothing_charged(gateway, chain):
        assert (await buy(gateway, payer.header())).status_code == 500


async def test_a_failing_fallback_owes_the_refund_of_the_bought_price(gateway, spare, payer):
    await choose(gateway)
    fail(gateway)
    spare.provider.script = [Transient("500")] * 4
    task = await paid_for(gateway, payer)
    assert (task["status"], task["slug"], task["refund"]["amount"]) == ("failed", "picture", 0.02)
    # The link of the fallback's failures finds it.
    for slug in ("picture", "spare"):
        listed = await gateway.client.get(f"/admin/tasks?slug={slug}&status=failed")
        assert task["taskId"][:18] in await listed.get_data(as_text=True)
    desk = operator_of(gateway.services).desk
    desk.shared.forget()
    counts = {one.slug: one.failed for one in (await read_facts(desk)).endpoints}
    assert (counts["picture"], counts["spare"]) == (0, 1)


async def test_the_fallbacks_own_rules_refuse_before_payment(gateway, spare, payer, chain):
    await choose(gateway)
    fail(gateway)
    spare.provider.refuse = "No boats."
    async with nothing_charged(gateway, chain):
        assert (await buy(gateway, payer.header())).status_code == 400
