"""Pause, price and cost by an operator: at once here, soon in other processes, fair to buyers."""

import time

import attrs
import pytest

from gateway.catalog.pricing import Prices
from gateway.domain import QUOTE_LIFE_S
from gateway.errors import ActionRefused, NeedsFresh, StaleForm, WrongValue
from gateway.settings import EndpointOverride
from gateway.store import SqliteStore
from gateway_operator.actions import endpoints as actions
from gateway_operator.audit_log import Actor
from gateway_operator.sql import overrides
from gateway_operator.sql.records import OperatorRecords
from gateway_operator.state import Operator
from gateway_x402.messages import MAX_TIMEOUT_S
from tests.conftest import buy, running
from tests.patience import until
from tests.store_contract.operators import new_action

ACTOR = Actor(door="page", name="s1", address="192.0.2.1")
BODY = {"prompt": "a boat"}


@pytest.fixture
def desk(gateway):
    return gateway.services.find(Operator).desk


async def price_of(gateway) -> int:
    answer = await gateway.client.post("/api/x402/picture", json=BODY)
    assert answer.status_code == 402, await answer.get_data()
    return int((await answer.get_json())["accepts"][0]["amount"])


async def log(desk) -> list[str]:
    return [one.action for one in await desk.records.actions(None, 50)]


async def change_price(desk, units, seen_units=None, **more):
    seen = seen_units or actions.find_endpoint(desk, "picture").endpoint.price_units
    options = {"seen": Prices(seen), "reason": "dearer", **more}
    chosen = None if units is None else Prices(units)
    return await actions.change_price(desk, ACTOR, "picture", chosen, **options)


# -- pause


async def test_a_paused_endpoint_is_not_listed_and_charges_nobody(gateway, desk, payer, chain):
    await actions.pause(desk, ACTOR, "picture", reason="the vendor changes its prices")
    answer = await gateway.client.get("/.well-known/agent-manifest.json")
    listed = [one["slug"] for one in (await answer.get_json())["availableEndpoints"]]
    assert "picture" not in listed
    refused = await buy(gateway, payer.header())
    assert refused.status_code == 500
    assert "paused; nothing was charged" in (await refused.get_json())["error"]
    assert chain.usdc_balance(payer.account.address) == 100_000_000
    assert gateway.services.catalog["picture"].change.pause_reason.startswith("the vendor")

    await actions.resume(desk, ACTOR, "picture")
    assert (await buy(gateway, payer.header())).status_code == 200
    assert await log(desk) == ["endpoint.resume", "endpoint.pause"]


async def test_what_was_paid_before_a_pause_is_finished_and_can_be_asked_for(
    gateway, desk, payer, provider
):
    header = payer.header()
    task_id = (await (await buy(gateway, header)).get_json())["taskId"]
    await actions.pause(desk, ACTOR, "picture", reason="x")
    again = await buy(gateway, header)
    assert (await again.get_json())["taskId"] == task_id
    assert (await gateway.wait(task_id))["status"] == "completed"


async def test_a_pause_wins_over_a_circuit_that_closes(gateway, desk):
    upstream = gateway.services.catalog["picture"].upstream
    upstream.circuit.trip("401 invalid_api_key")
    await actions.pause(desk, ACTOR, "picture", reason="x")
    upstream.circuit.try_again()
    assert "picture" not in [endpoint.slug for endpoint in gateway.services.catalog]


async def test_a_pause_survives_a_restart(settings, provider, clock, chain):
    async with running(settings, provider, now=clock) as gateway:
        await actions.pause(gateway.services.find(Operator).desk, ACTOR, "picture", reason="x")
    async with running(settings, provider, now=clock) as gateway:
        assert gateway.services.catalog["picture"].is_paused


async def test_pausing_twice_is_refused_and_a_repeated_request_is_not(gateway, desk):
    actor = attrs.evolve(ACTOR, request="s1 r1")
    for _ in range(2):
        assert (await actions.pause(desk, actor, "picture", reason="x")).is_paused
    with pytest.raises(ActionRefused, match="paused already"):
        await actions.pause(desk, ACTOR, "picture", reason="x")
    await actions.resume(desk, ACTOR, "picture")
    with pytest.raises(ActionRefused, match="not paused"):
        await actions.resume(desk, ACTOR, "picture")
    assert await log(desk) == ["endpoint.resume", "endpoint.pause"]
    with pytest.raises(WrongValue, match="reason"):
        await actions.pause(desk, ACTOR, "picture", reason="")
    with pytest.raises(WrongValue, match="no endpoint"):
        await actions.pause(desk, ACTOR, "nonsense", reason="x")


async def test_the_running_gateway_follows_what_another_process_wrote(gateway, desk, settings):
    def write(db):
        overrides.insert(db, "picture", "paused", "true", None, time.time())

    async with SqliteStore(settings.data_dir / "gateway.db") as other:
        shell = Actor(door="cli", name="paul")
        await OperatorRecords(other).act(write, action=new_action(actor=shell))
    await until(lambda: gateway.services.catalog["picture"].is_paused)


# -- price


async def test_a_new_price_is_asked_for_at_once_and_the_manifest_says_since_when(
    gateway, desk, clock
):
    assert await price_of(gateway) == 20_000
    changed = await change_price(desk, 50_000)
    assert changed.endpoint.price_units == 50_000
    assert await price_of(gateway) == 50_000
    manifest = await (await gateway.client.get("/.well-known/agent-manifest.json")).get_json()
    assert manifest["updated"] == time.strftime("%Y-%m-%d", time.gmtime(clock()))
    await change_price(desk, None)
    assert await price_of(gateway) == 20_000
    first, second = await desk.records.actions(None, 9)
    assert (second.before, second.after) == ({"price": None}, {"price": "50000"})
    assert (first.before, first.after) == ({"price": "50000"}, {"price": None})


@pytest.mark.parametrize("new", [50_000, 10_000])
async def test_a_402_stays_good_for_its_lifetime(gateway, desk, payer, chain, clock, new):
    await change_price(desk, new)
    assert (await buy(gateway, payer.header(20_000))).status_code == 200
    assert chain.usdc_balance(payer.account.address) == 100_000_000 - 20_000
    clock.offset_s += QUOTE_LIFE_S + 1
    late = payer.header(20_000, valid_before=int(clock()) + 300)
    answer = await buy(gateway, late)
    assert answer.status_code == 402
    assert (await answer.get_json())["error"].endswith("value_mismatch")


def test_a_402_promises_its_price_for_as_long_as_it_is_good():
    assert MAX_TIMEOUT_S == QUOTE_LIFE_S


async def test_a_direct_transfer_of_the_earlier_price_is_taken(gateway, desk, payer, clock):
    paid = payer.transfer(20_000)
    await change_price(desk, 50_000)
    body = {"slug": "picture", **BODY, "txHash": paid}
    assert (await gateway.client.post("/api/proxy-generate", json=body)).status_code == 200
    late = payer.transfer(20_000)
    clock.offset_s += QUOTE_LIFE_S + 1
    answer = await gateway.client.post("/api/proxy-generate", json={**body, "txHash": late})
    assert (await answer.get_json())["code"] == "INSUFFICIENT_PAYMENT"


async def test_a_price_that_changed_meanwhile_is_not_changed_again(gateway, desk):
    await change_price(desk, 50_000)
    with pytest.raises(StaleForm, match=r"0\.05 USDC by now"):
        await change_price(desk, 60_000, seen_units=20_000)
    assert await price_of(gateway) == 50_000


async def test_a_price_below_the_cost_is_refused(gateway, desk):
    await actions.change_cost(desk, ACTOR, "picture", 30_000)
    preview = await actions.preview_price(desk, "picture", Prices(25_000))
    assert (preview.margin_units, preview.is_below_cost) == (-5_000, True)
    for is_fresh in (False, True):
        with pytest.raises(ActionRefused, match="allow_loss = true"):
            await change_price(desk, 25_000, is_fresh=is_fresh)
    assert await price_of(gateway) == 20_000
    await change_price(desk, 30_000)
    assert await price_of(gateway) == 30_000


async def test_a_loss_that_the_file_allows_needs_a_fresh_password(settings, provider, clock):
    allowing = {"picture": EndpointOverride(allow_loss=True)}
    async with running(attrs.evolve(settings, endpoints=allowing), provider, now=clock) as gateway:
        desk = gateway.services.find(Operator).desk
        await actions.change_cost(desk, ACTOR, "picture", 30_000)
        with pytest.raises(NeedsFresh, match="below the cost"):
            await change_price(desk, 25_000)
        await change_price(desk, 25_000, is_fresh=True)
        assert await price_of(gateway) == 25_000


async def test_the_preview_says_what_is_sold_and_that_a_cost_is_unknown(gateway, desk, payer):
    await buy(gateway, payer.header())
    preview = await actions.preview_price(desk, "picture", Prices(40_000))
    assert (preview.old_units, preview.new_units, preview.file_units) == (20_000, 40_000, 20_000)
    assert (preview.sales, preview.sold_units) == (1, 20_000)
    assert (preview.cost_micros, preview.margin_units, preview.is_below_cost) == (None, None, False)


@pytest.mark.parametrize("units", [0, -1, 10**12])
async def test_an_impossible_price_is_refused(desk, units):
    with pytest.raises(WrongValue):
        await change_price(desk, units)
    with pytest.raises(WrongValue):
        await actions.change_cost(desk, ACTOR, "picture", -1)


# -- cost


async def test_a_cost_that_the_operator_set_is_written_down_with_the_task(gateway, desk, payer):
    await actions.change_cost(desk, ACTOR, "picture", 12_000)
    task_id = (await (await buy(gateway, payer.header())).get_json())["taskId"]
    await gateway.wait(task_id)
    job = (await desk.store.jobs_of([task_id]))[task_id]
    assert (job.cost_micros, job.cost_source) == (12_000, "set")
    await actions.change_cost(desk, ACTOR, "picture", None, is_fresh=True)
    assert gateway.services.catalog["picture"].endpoint.cost_micros is None


# -- try the vendor


async def test_a_vendor_is_tried_and_sells_again_once_in_ten_seconds(gateway, desk, clock):
    upstream = gateway.services.catalog["picture"].upstream
    upstream.circuit.trip("500: overloaded")
    assert await actions.try_vendor_now(desk, ACTOR, "picture") is None
    assert not upstream.circuit.is_open
    with pytest.raises(ActionRefused, match="a moment ago"):
        await actions.try_vendor_now(desk, ACTOR, "picture")
    clock.offset_s += 11
    assert await actions.try_vendor_now(desk, ACTOR, "picture") is None
    assert await log(desk) == ["vendor.try", "vendor.try"]


async def test_a_price_that_changes_while_a_stale_form_is_checked_is_kept(
    gateway, desk, monkeypatch
):
    read_sum = desk.store.sum
    others = [30_000]

    async def change_meanwhile(function, *arguments):
        if function is overrides.newest_value and others:
            await change_price(desk, others.pop())
        return await read_sum(function, *arguments)

    monkeypatch.setattr(desk.store, "sum", change_meanwhile)
    with pytest.raises(StaleForm):
        await change_price(desk, 40_000, seen_units=20_000)
    assert await price_of(gateway) == 30_000
