"""Whatever /settle responds: the chain decides, and an unknown outcome is never a 402."""

import asyncio

import pytest

from gateway_facilitator_settler.settler import FacilitatorTiming
from tests.conftest import WALLET, buy, running
from tests.gateway.facilitator.facilitators import (
    LIES,
    REFUSED,
    SUCCESS,
    answer,
    hangs,
    says,
    settles_and_changes,
    settles_and_hangs,
    settles_but_says,
)
from tests.patience import until

PRICE = 20_000
# Through the whole gateway only one of each kind; client/test_requests.py has them all.
TOLD = {
    name: LIES[name]
    for name in (
        "success false",
        "pending",
        "a hash that never lands",
        "another network",
        "no JSON",
        "oversized",
        "429",
        "500",
        "a redirect",
    )
}
DEEDS = {name: settles_but_says(*said) for name, said in TOLD.items()} | {
    "hangs": settles_and_hangs,
    "an honest hash, another network": settles_and_changes(network="base-sepolia"),
}
FAILURES = {name: says(*said) for name, said in TOLD.items()} | {"hangs": hangs}


@pytest.fixture
def facilitator_timing():
    return FacilitatorTiming(answer_s=0.3, pause_s=0.5)


def each(faults):
    return pytest.mark.parametrize("fault", faults.values(), ids=faults.keys())


async def started(answered) -> str:
    body = await answered.get_json()
    assert answered.status_code == 200, body
    return body["taskId"]


async def completed_once(gateway, chain, task_id):
    task = await gateway.wait(task_id)
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    assert chain.usdc_balance(WALLET) == PRICE
    assert sum((await gateway.services.store.counts())["tasks"].values()) == 1


@each(DEEDS)
async def test_what_was_settled_completes_whatever_the_facilitator_says(
    gateway, payer, chain, site, fault
):
    site.faults["/settle"] = fault
    header = payer.header()
    task_id = await started(await buy(gateway, header))
    await completed_once(gateway, chain, task_id)
    site.heal()
    assert await started(await buy(gateway, header)) == task_id


@each(FAILURES)
async def test_what_was_not_settled_is_held_and_then_released(
    gateway, payer, chain, site, clock, fault
):
    gateway.services.payments.outcome_s = 0.3
    site.faults["/settle"] = fault
    header = payer.header()
    task_id = await started(await buy(gateway, header))

    async def is_settling():
        task = await (await gateway.client.get(f"/api/task/{task_id}")).get_json()
        assert task["status"] == "queued"
        return task["payment"]["state"] == "settling"

    await until(is_settling)
    clock.offset_s += 700
    chain.advance(700)
    task = await gateway.wait(task_id)
    assert (task["status"], task["code"]) == ("failed", "PAYMENT_NOT_SETTLED")
    assert chain.usdc_balance(WALLET) == 0
    assert (await buy(gateway, header)).status_code == 402


@each({name: FAILURES[name] for name in ("success false", "429", "500", "no JSON", "hangs")})
async def test_a_facilitator_that_recovers_is_asked_again_and_settles_once(
    gateway, payer, chain, site, fault
):
    site.faults["/settle"] = fault
    task_id = await started(await buy(gateway, payer.header()))
    assert chain.usdc_balance(WALLET) == 0
    site.heal()
    await completed_once(gateway, chain, task_id)


async def test_the_hash_of_a_payment_to_somebody_else_settles_nothing(
    gateway, payer, chain, site, clock
):
    foreign = payer.transfer(PRICE, to="0x" + "77" * 20)
    site.faults["/settle"] = says(SUCCESS | {"transaction": foreign})
    task_id = await started(await buy(gateway, payer.header()))
    clock.offset_s += 700
    chain.advance(700)
    assert (await gateway.wait(task_id))["code"] == "PAYMENT_NOT_SETTLED"


async def test_the_hash_of_another_purchase_settles_nothing(gateway, payer, chain, site, clock):
    first = await gateway.wait(await started(await buy(gateway, payer.header())))
    site.faults["/settle"] = says(SUCCESS | {"transaction": first["payment"]["transaction"]})
    task_id = await started(await buy(gateway, payer.header()))
    clock.offset_s += 700
    chain.advance(700)
    assert (await gateway.wait(task_id))["code"] == "PAYMENT_NOT_SETTLED"
    assert chain.usdc_balance(WALLET) == PRICE


async def test_after_its_last_moment_a_payment_is_not_posted_any_more(
    gateway, payer, chain, site, clock
):
    site.faults["/settle"] = says(REFUSED)
    task_id = await started(await buy(gateway, payer.header()))
    clock.offset_s += 700  # ours alone: the chain has not come so far, the payment stays open
    posted = site.count("/settle")
    await asyncio.sleep(1.5)  # three pauses
    assert site.count("/settle") <= posted + 1  # one may have been on its way
    chain.advance(700)
    assert (await gateway.wait(task_id))["code"] == "PAYMENT_NOT_SETTLED"


async def test_a_slow_facilitator_does_not_keep_the_chain_from_being_looked_at(
    gateway, payer, chain, site
):
    """The task completes while the request to settle has no response yet."""
    site.faults["/settle"] = settles_and_hangs
    task_id = await started(await buy(gateway, payer.header()))
    await completed_once(gateway, chain, task_id)
    assert not site.healed.is_set()
    assert site.count("/settle") == 1


async def test_a_payment_is_durably_settling_before_the_facilitator_is_told(gateway, payer, site):
    states = []
    path = gateway.services.settings.data_dir / "gateway.db"

    def checks_first(site, request):
        import sqlite3

        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            states.extend(db.execute("SELECT state FROM payments").fetchall())
        db.close()
        return answer(site.really(request))

    site.faults["/settle"] = checks_first
    await gateway.wait(await started(await buy(gateway, payer.header())))
    assert states == [("settling",)]


@pytest.mark.parametrize("killed", ["before", "after"])
async def test_a_restart_around_settling_ends_as_one_task(
    settings, provider, payer, chain, site, monkeypatch, killed
):
    """Killed between T2 and /settle, or after the transfer and before the response."""
    from gateway_facilitator_settler.client import FacilitatorClient

    really = FacilitatorClient.post

    async def no_check(self, payment):
        return False

    async def never_sent(self, path, body):
        return await (asyncio.Event().wait() if path == "/settle" else really(self, path, body))

    with monkeypatch.context() as dying:
        if killed == "before":
            dying.setattr(FacilitatorClient, "post", never_sent)
        else:
            site.faults["/settle"] = settles_and_hangs
            dying.setattr("gateway.payments.settlement.Reconciler.close", no_check)
        async with running(settings, provider) as first:
            first.services.payments.outcome_s = 1.0
            task_id = await started(await buy(first, payer.header()))
            payment = (await first.services.store.task(task_id)).payment
            assert payment.state == "settling"
    assert site.count("/settle") == (0 if killed == "before" else 1)
    assert chain.usdc_balance(WALLET) == (0 if killed == "before" else PRICE)

    site.heal()
    async with running(settings, provider) as second:
        await completed_once(second, chain, task_id)
