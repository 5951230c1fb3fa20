"""The verdict of the crash test: it finds each kind of problem, and only real ones."""

import contextlib
import sqlite3

import attrs
import pytest

from gateway.store.sqlite.store import SqliteStore
from gateway_testing import facts
from tests.conftest import WALLET, Payer
from tests.proof.crashes.clients import Memory, Purchase
from tests.proof.crashes.remote_chain import RemoteChain
from tests.proof.crashes.verdict import compare, find_transfers

PRICE = 20_000


@attrs.define
class Case:
    """A consistent chain, database and memory: one purchase in the direct flow."""

    folder: object
    chain: object
    payer: Payer
    remote: RemoteChain
    purchase: Purchase
    memory: Memory

    def problems(self):
        verdict = compare(self.folder, self.remote, self.memory)
        kinds = ("lost", "doubled", "unpaid", "stuck")
        return {kind for kind in kinds if getattr(verdict, kind)}

    def edit(self, sql):
        with contextlib.closing(sqlite3.connect(self.folder / "data" / "gateway.db")) as db:
            db.execute(sql)
            db.commit()


@pytest.fixture
async def case(tmp_path, chain):
    payer = Payer(chain)
    tx_hash = payer.transfer(PRICE)
    with contextlib.closing(RemoteChain(chain.rpc_url)) as remote:
        (transfer,) = find_transfers(remote).values()
        async with SqliteStore(tmp_path / "data" / "gateway.db") as store:
            paid = attrs.evolve(
                facts.transfer(), tx_hash=tx_hash, log_index=0, sender=transfer.sender
            )
            task = await store.accept_direct(facts.new_task(), tx_hash, [paid], None)
            (lease,) = await store.queue.lease(1, lease_s=60, now=facts.NOW)
            result = attrs.evolve(facts.RESULT, outputs=())
            await store.queue.complete(lease, result, expires_at=facts.NOW, now=facts.NOW)
        (tmp_path / "calls").write_text(f"{task.id} 1\n")
        purchase = Purchase(prompt="boat", claims={tx_hash}, task_ids={task.id})
        yield Case(tmp_path, chain, payer, remote, purchase, Memory(purchases=[purchase]))


async def test_where_all_agree_nothing_is_wrong(case):
    assert case.problems() == set()


async def test_a_transfer_without_a_task_is_lost(case):
    tx_hash = case.payer.transfer(PRICE)
    case.memory.purchases.append(Purchase(prompt="other", claims={tx_hash}))
    assert case.problems() == {"lost"}


async def test_a_transfer_of_a_stranger_that_no_task_has_is_lost(case):
    case.payer.transfer(PRICE)
    assert case.problems() == {"lost"}


async def test_a_task_that_was_told_and_does_not_exist_is_lost(case):
    case.purchase.task_ids.add("another")
    assert "lost" in case.problems()


async def test_an_answer_that_no_conforming_client_hears_is_lost(case):
    case.purchase.surprises.append("400 TX_ALREADY_USED")
    assert case.problems() == {"lost"}


async def test_a_purchase_that_was_charged_twice_is_doubled(case):
    case.purchase.claims.add(case.payer.transfer(PRICE))
    assert "doubled" in case.problems()


async def test_a_task_for_anothers_money_is_doubled(case):
    case.memory.stolen.append("task")
    assert case.problems() == {"doubled"}


async def test_a_task_without_a_transfer_is_unpaid(case):
    case.edit(f"UPDATE payments SET paid_tx = '0x{'ab' * 32}'")
    assert "unpaid" in case.problems()


async def test_a_task_that_has_not_ended_is_stuck(case):
    async with SqliteStore(case.folder / "data" / "gateway.db") as store:
        await facts.reserved(store)
    assert case.problems() == {"stuck"}


async def test_a_task_that_nobody_bought_and_that_was_generated_is_unpaid(case):
    with (case.folder / "calls").open("a") as calls:
        calls.write("stranger 1\n")
    assert case.problems() == {"unpaid"}


async def test_only_transfers_to_the_wallet_count(case):
    case.payer.transfer(PRICE, to=case.payer.account.address)
    assert [one.units for one in find_transfers(case.remote).values()] == [PRICE]
    assert case.chain.usdc_balance(WALLET) == PRICE
