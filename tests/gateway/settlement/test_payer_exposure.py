"""The limits of one payer's cost to the gateway: open payments, and wasted gas."""

import asyncio
import base64

import attrs
import pytest

from gateway.payments.settlement import SettlementTiming
from gateway_demo.chain import FAUCET_KEY
from tests.authorizations import cancel, header_of, payload_of
from tests.conftest import WALLET, Payer, buy, nothing_charged, running
from tests.patience import until
from tests.waits import FAST, Waits, started_with

PRICE = 20_000
EVERYTHING = 100_000_000


@pytest.fixture(autouse=True)
def _fast():
    with started_with(Waits(outcome_s=1.0, settlement=FAST)):
        yield


async def bought(gateway, header, **fields) -> str:
    answer = await buy(gateway, header, **fields)
    body = await answer.get_json()
    assert answer.status_code == 200, body
    return body["taskId"]


async def pay_directly(gateway, tx_hash):
    body = {"slug": "picture", "prompt": "a boat", "txHash": tx_hash}
    return await gateway.client.post("/api/proxy-generate", json=body)


async def error_of(answer) -> str:
    return (await answer.get_json())["error"]


async def failures(gateway) -> list:
    return await gateway.services.store.payers.failures(since=0)


async def reverts(gateway, chain, payer, betray) -> str:
    """Buy, with a transaction of the payer's own mined just before ours; returns the task."""
    chain.set_automine(False)
    betray()
    task_id = await bought(gateway, payer.header())

    async def ours_waits():
        return len(chain.node.pool.waiting) > 1

    await until(ours_waits)
    chain.set_automine(True)
    return task_id


async def cancelled(gateway, chain, payer) -> None:
    """Buy with an authorization whose cancellation is mined before our transaction."""
    signed = payer.authorization()
    chain.set_automine(False)
    cancel(chain, payer, signed.nonce)
    await bought(gateway, payer.header(nonce=signed.nonce, valid_before=signed.valid_before))
    chain.set_automine(True)


def empty(chain, payer):
    """Return a call that moves all of the payer's money away."""
    return lambda: chain.transfer_usdc(payer.account.key, "0x" + "99" * 20, EVERYTHING)


# -- honest buyers


async def test_a_new_buyer_who_signs_several_purchases_at_once_gets_them_all(gateway, chain, payer):
    ids = await asyncio.gather(
        *(bought(gateway, payer.header(), prompt=f"boat {number}") for number in range(6))
    )
    assert len(set(ids)) == 6
    tasks = [await gateway.wait(task_id) for task_id in ids]
    assert {task["payment"]["state"] for task in tasks} == {"settled"}
    assert chain.usdc_balance(WALLET) == 6 * PRICE


async def test_a_new_buyer_has_one_payment_open_and_is_told_so(gateway, chain, payer):
    gateway.services.payments.exposure.turn_s = 0.5
    chain.set_automine(False)
    first = await bought(gateway, payer.header())
    second = payer.header()
    answer = await buy(gateway, second)
    assert answer.status_code == 500
    assert "not settled yet; nothing was charged" in await error_of(answer)
    assert (await gateway.services.store.counts())["payments"] == {"settling": 1}
    chain.set_automine(True)
    await gateway.wait(first)
    await gateway.wait(await bought(gateway, second))
    assert chain.usdc_balance(WALLET) == 2 * PRICE


async def test_who_paid_before_may_have_as_many_open_as_the_balance_covers(gateway, chain, payer):
    gateway.services.payments.exposure.turn_s = 0.5
    for _ in range(3):
        await gateway.wait(await bought(gateway, payer.header()))
    left = chain.usdc_balance(payer.account.address)
    payer.transfer(left - 2 * PRICE, to="0x" + "99" * 20)
    chain.set_automine(False)
    await bought(gateway, payer.header(), prompt="one")
    await bought(gateway, payer.header(), prompt="two")
    assert (await buy(gateway, payer.header(), prompt="three")).status_code == 500
    chain.set_automine(True)
    assert (await gateway.services.store.counts())["payments"]["settled"] >= 3


async def test_sixty_authorizations_over_one_balance_open_one_payment(gateway, chain, payer):
    gateway.services.payments.exposure.turn_s = 0.5
    chain.transfer_usdc(payer.account.key, "0x" + "99" * 20, EVERYTHING - PRICE)
    chain.set_automine(False)
    answers = await asyncio.gather(
        *(buy(gateway, payer.header(), prompt=f"boat {number}") for number in range(60))
    )
    statuses = [answer.status_code for answer in answers]
    assert (statuses.count(200), statuses.count(500)) == (1, 59)
    assert sum((await gateway.services.store.counts())["payments"].values()) == 1
    chain.set_automine(True)


async def test_forged_signatures_take_no_place_in_a_payer_s_line(gateway, chain, payer):
    """Twenty others use his name while his own purchase waits."""
    chain.set_automine(False)
    first = await bought(gateway, payer.header(), prompt="one")
    forged = [header_of(payload_of(payer.authorization(), b"\1" * 65)) for _ in range(20)]
    own = asyncio.create_task(bought(gateway, payer.header(), prompt="two"))
    answers = await asyncio.gather(*(buy(gateway, header) for header in forged))
    assert {answer.status_code for answer in answers} == {402}
    chain.set_automine(True)
    await gateway.wait(first)
    await gateway.wait(await own)
    assert chain.usdc_balance(WALLET) == 2 * PRICE


# -- payers who make our settlement revert


@pytest.mark.parametrize("how", ["drained", "spent"])
async def test_a_payer_whose_settlement_reverted_pays_directly_for_a_day(
    settings, provider, chain, clock, payer, how
):
    async with running(settings, provider, now=clock) as gateway:
        gateway.chain = chain
        await gateway.services.payments.cutoff_block()
        if how == "drained":
            await reverts(gateway, chain, payer, empty(chain, payer))
        else:
            await cancelled(gateway, chain, payer)
        (failure,) = await until(lambda: failures(gateway))
        assert failure.failure == how
    clock.offset_s += 700
    chain.advance(700)
    async with running(settings, provider, now=clock) as gateway:  # a restart forgets none
        gateway.chain = chain
        late = {"valid_before": int(clock()) + 300}

        async def is_closed():
            return "settling" not in (await gateway.services.store.counts())["payments"]

        await until(is_closed)
        chain.fund(payer.account.address)
        async with nothing_charged(gateway, chain):
            refusal = await buy(gateway, payer.header(**late))
        assert refusal.status_code == 402
        assert "x402 is closed to it until" in await error_of(refusal)
        paid = await pay_directly(gateway, payer.transfer(PRICE))
        assert paid.status_code == 200, await paid.get_json()
        await bought(gateway, Payer(chain).header(**late))
        await gateway.services.store.payers.lift(payer.account.address, note="ours", now=clock())
        await bought(gateway, payer.header(**late))


async def test_the_day_ends(gateway, chain, payer, clock):
    await reverts(gateway, chain, payer, empty(chain, payer))
    await until(lambda: failures(gateway))
    clock.offset_s += 86_500
    chain.advance(86_500)
    chain.fund(payer.account.address)
    header = payer.header(valid_before=int(clock()) + 300)

    async def is_sold():
        return (await buy(gateway, header)).status_code == 200

    await until(is_sold)


async def test_a_revert_whose_cause_is_not_shown_bars_no_payer(gateway, chain, payer):
    """The money was away only while our transaction ran; the next one takes it."""
    other = Payer(chain)
    chain.set_automine(False)
    chain.transfer_usdc(payer.account.key, other.account.address, EVERYTHING)
    task_id = await bought(gateway, payer.header())

    async def ours_waits():
        return len(chain.node.pool.waiting) > 1

    await until(ours_waits)
    chain.transfer_usdc(other.account.key, payer.account.address, EVERYTHING)
    chain.set_automine(True)
    task = await gateway.wait(task_id)
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    assert await failures(gateway) == []


async def test_a_payer_whose_money_came_after_all_is_not_barred(gateway, chain, payer):
    """A third party was faster with the same authorization: ours reverts, and we are paid."""
    signed = payer.authorization()
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    chain.set_automine(False)
    chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
    task_id = await bought(gateway, header)
    chain.set_automine(True)
    task = await gateway.wait(task_id)
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    await gateway.wait(await bought(gateway, payer.header()))


async def test_a_barred_payer_is_sold_what_his_money_has_come_for(gateway, chain, payer):
    """A third party has submitted his authorization: it costs no gas of ours."""
    await cancelled(gateway, chain, payer)
    await until(lambda: failures(gateway))
    signed = payer.authorization()
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    assert (await buy(gateway, header)).status_code == 402
    chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
    task = await gateway.wait(await bought(gateway, header))
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")


# -- payments that stay open


async def test_a_payment_that_stays_open_is_looked_at_rarely_and_settles_all_the_same(
    settings, provider, chain, clock, payer, rpc_calls
):
    def count(method: str) -> int:
        return sum(method.encode() in body for body in rpc_calls)

    rarely = SettlementTiming(poll_s=0.02, drive_s=3.0, sweep_s=0.02, old_s=0, old_check_s=3600)
    chain.set_automine(False)
    with started_with(Waits(outcome_s=0.2, settlement=rarely)):
        async with running(settings, provider, now=clock) as gateway:
            task_id = await bought(gateway, payer.header())

            async def has_been_swept(times: int):
                wanted = count("eth_getTransactionCount") + times

                async def reached() -> bool:
                    return count("eth_getTransactionCount") >= wanted

                await until(reached)

            await until(drivers_ended)
            await has_been_swept(3)
            await until(drivers_ended)
            reads = count("eth_getTransactionReceipt")
            await has_been_swept(10)
            assert count("eth_getTransactionReceipt") == reads
    chain.set_automine(True)
    often = attrs.evolve(rarely, old_check_s=0.02)
    with started_with(Waits(outcome_s=0.2, settlement=often)):
        async with running(settings, provider, now=clock) as gateway:
            gateway.chain = chain
            assert (await gateway.wait(task_id))["payment"]["state"] == "settled"


async def drivers_ended() -> bool:
    return not any(task.get_name().startswith("settle-") for task in asyncio.all_tasks())


# -- files whose payments are open


def document(megabytes: float) -> dict:
    data = base64.b64encode(b"a" * int(megabytes * 10**6)).decode()
    return {"fileBase64": data, "fileName": "a.txt", "url": "/api/x402/paper"}


@pytest.fixture
async def small(settings, provider, chain, clock):
    """Yield a gateway with room for two of the documents, while no payment is mined."""
    with_little = attrs.evolve(settings, held_files_mb=2)
    async with running(with_little, provider, now=clock) as gateway:
        gateway.chain = chain
        await gateway.services.payments.cutoff_block()
        chain.set_automine(False)
        yield gateway


async def finds_no_room(gateway, header) -> None:
    answer = await buy(gateway, header, **document(0.9))
    assert answer.status_code == 500
    assert "wait for their payments" in await error_of(answer)


async def test_held_files_have_a_cap_and_leave_room_once_they_are_paid(small, chain):
    held = [await bought(small, Payer(chain).header(10_000), **document(0.9)) for _ in range(2)]
    header = Payer(chain).header(10_000)
    await finds_no_room(small, header)
    await bought(small, Payer(chain).header())  # a picture has no file
    chain.set_automine(True)
    for task_id in held:
        await small.wait(task_id)
    await small.wait(await bought(small, header, **document(0.9)))


async def test_signatures_that_stay_valid_for_an_hour_hold_half_of_the_room_for_files(
    small, chain, clock
):
    hour = {"valid_before": int(clock()) + 3_600}
    await bought(small, Payer(chain).header(10_000, **hour), **document(0.9))
    await finds_no_room(small, Payer(chain).header(10_000, **hour))
    await bought(small, Payer(chain).header(10_000), **document(0.9))
