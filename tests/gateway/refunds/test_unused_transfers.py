"""A transfer that no request used within a day is given back once, by the operator's decision."""

import attrs
import pytest

from gateway.errors import NeedsFresh, StaleForm
from gateway_operator.actions.refunds import reject
from gateway_operator.actions.transfers import give_back
from gateway_operator.audit_log import Actor
from gateway_operator.desk.conditions import find_conditions
from gateway_operator.desk.facts import read_facts
from gateway_operator.desk.payments import read_unused
from gateway_operator.state import Operator
from tests.gateway.refunds.steps import EVERYTHING
from tests.patience import until
from tests.plugins.gateway_operator.app.operator import RIGHT, actions_of, log_in, post, text_of

PAGE = "/admin/payments/refund"
DAY_S = 86_400.0
SURE = {"sure": "yes", "password": RIGHT}


@pytest.fixture
async def desk(gateway, chain):
    await log_in(gateway)
    # No transfer of the second in which the database was made counts.
    chain.advance(2)
    found = gateway.services.find(Operator).desk
    found.unused.pause_s = 0.0
    return found


async def send_hash(gateway, tx_hash):
    body = {"slug": "picture", "prompt": "a boat", "txHash": tx_hash}
    return await gateway.client.post("/api/proxy-generate", json=body)


async def search(desk):
    """Search now; return the unused transfers as the page shows them."""
    desk.unused.searched_at = None
    return (await read_unused(desk, timeout_s=60.0)).transfers


async def conditions(desk) -> list:
    desk.shared.ttl_s = 0.0
    found = find_conditions(await read_facts(desk))
    return [one for one in found if one.condition == "unused_transfer"]


async def lose_transfer(gateway, desk, chain, clock, payer, units=20_000) -> str:
    """Refuse a hash as not found; its money arrives later, and a day passes."""
    chain.set_automine(False)
    tx_hash = payer.transfer(units)
    answer = await send_hash(gateway, tx_hash)
    assert (await answer.get_json())["code"] == "TX_NOT_FOUND"
    chain.set_automine(True)
    await pass_day(gateway, desk, clock)
    return tx_hash


async def pass_day(gateway, desk, clock) -> None:
    clock.offset_s += DAY_S + 60
    # The session has ended.
    await log_in(gateway)
    await search(desk)


async def test_money_of_a_refused_hash_is_a_condition_whose_button_gives_it_back(
    gateway, desk, chain, clock, payer
):
    tx_hash = await lose_transfer(gateway, desk, chain, clock, payer)
    (found,) = await conditions(desk)
    assert payer.account.address.lower() in found.text
    assert (found.button, found.raises_alarm) == ("Refund", False)
    assert found.href.startswith(f"{PAGE}?transfer={tx_hash}:")
    dialog = await text_of(await gateway.client.get(found.href))
    assert "Give back 0.02 USDC" in dialog
    assert payer.account.address.lower() in dialog
    transfer = found.href.partition("=")[2]
    answer = await post(gateway, PAGE, transfer=transfer, request="one", **SURE)
    assert answer.status_code == 303
    await until(lambda: chain.usdc_balance(payer.account.address) == EVERYTHING)
    assert await search(desk) == []
    assert await conditions(desk) == []
    (row,) = await actions_of(gateway, "transfer.refund")
    assert row.subject == transfer


async def test_a_transfer_that_was_given_back_buys_nothing(gateway, desk, chain, clock, payer):
    tx_hash = await lose_transfer(gateway, desk, chain, clock, payer)
    (one,) = await search(desk)
    await post(gateway, PAGE, transfer=f"{tx_hash}:{one.log_index}", **SURE)
    answer = await send_hash(gateway, tx_hash)
    body = await answer.get_json()
    assert (answer.status_code, body["code"]) == (400, "TX_ALREADY_USED")
    assert "given back" in body["error"]


async def test_two_decisions_give_it_back_once(gateway, desk, chain, clock, payer):
    tx_hash = await lose_transfer(gateway, desk, chain, clock, payer)
    (one,) = await search(desk)
    form = {"transfer": f"{tx_hash}:{one.log_index}"} | SURE
    assert (await post(gateway, PAGE, **form)).status_code == 303
    assert (await post(gateway, PAGE, **form)).status_code == 409
    await until(lambda: chain.usdc_balance(payer.account.address) == EVERYTHING)
    assert len(await gateway.services.store.refunds.cases()) == 1


@pytest.mark.parametrize("later_s", [0.0, 90.0])
async def test_a_repeat_of_a_refused_request_approves_the_refund(
    gateway, desk, chain, clock, payer, later_s
):
    """The debt is recorded first; then the password was missing, or the answer got lost."""
    tx_hash = await lose_transfer(gateway, desk, chain, clock, payer)
    (one,) = await search(desk)
    capped = attrs.evolve(desk, settings=attrs.evolve(desk.settings, refund_daily_cap="0.01"))
    capped.unused.pause_s = 0.0
    await search(capped)
    place = (Actor(door="page", name="s1", request="one"), tx_hash, one.log_index)
    with pytest.raises(NeedsFresh):
        await give_back(capped, *place, accepts_unproven=True)
    clock.offset_s += later_s
    if later_s:
        await search(capped)
    with pytest.raises(NeedsFresh):
        await give_back(capped, *place, accepts_unproven=True)
    for _ in range(2):
        await give_back(capped, *place, accepts_unproven=True, is_fresh=True)
    await until(lambda: chain.usdc_balance(payer.account.address) == EVERYTHING)
    await give_back(capped, *place, accepts_unproven=True)
    assert len(await actions_of(gateway, "transfer.refund")) == 1
    assert len(await actions_of(gateway, "refund.approve")) == 1


async def test_a_repeat_overrides_no_rejection(gateway, desk, chain, clock, payer):
    tx_hash = await lose_transfer(gateway, desk, chain, clock, payer)
    (one,) = await search(desk)
    capped = attrs.evolve(desk, settings=attrs.evolve(desk.settings, refund_daily_cap="0.01"))
    capped.unused.pause_s = 0.0
    await search(capped)
    actor = Actor(door="page", name="s1", request="one")
    place = (actor, tx_hash, one.log_index)
    with pytest.raises(NeedsFresh):
        await give_back(capped, *place, accepts_unproven=True)
    (case,) = await desk.store.refunds.cases()
    await reject(desk, attrs.evolve(actor, request="two"), [case.task_id], reason="an exchange")
    with pytest.raises(StaleForm):
        await give_back(capped, *place, accepts_unproven=True, is_fresh=True)


async def test_a_transfer_that_may_still_be_used_is_not_given_back(gateway, desk, payer):
    tx_hash = payer.transfer(20_000)
    (one,) = await search(desk)
    assert await conditions(desk) == []
    answer = await post(gateway, PAGE, transfer=f"{tx_hash}:{one.log_index}", **SURE)
    assert answer.status_code == 409
    assert (await send_hash(gateway, tx_hash)).status_code == 200


async def test_a_marked_transfer_and_an_unconfirmed_form_give_nothing_back(
    gateway, desk, chain, clock, payer
):
    tx_hash = await lose_transfer(gateway, desk, chain, clock, payer)
    (one,) = await search(desk)
    transfer = f"{tx_hash}:{one.log_index}"
    assert (await post(gateway, PAGE, transfer=transfer)).status_code == 409
    await post(gateway, "/admin/payments/seen", transfer=transfer, reason="sent by hand")
    assert await conditions(desk) == []
    assert (await post(gateway, PAGE, transfer=transfer, **SURE)).status_code == 409
    assert await gateway.services.store.refunds.cases() == []


async def test_dust_raises_no_condition_and_many_transfers_raise_ten(
    gateway, desk, chain, clock, payer
):
    """Anyone can send money; each condition costs them at least the lowest price."""
    for units in (1, 5, *range(20_000, 20_012)):
        payer.transfer(units)
    await pass_day(gateway, desk, clock)
    assert len(await conditions(desk)) == 10
