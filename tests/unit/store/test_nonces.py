"""The transactions whose times are requested, and the effect of an endpoint's lie on the books."""

from gateway.domain import Block, Receipt
from gateway.running.core_parts import GasRecords
from gateway_testing.facts import SIGNER, settling, signed_transaction, tx_hash


async def row_of(store, wanted):
    def read(db):
        sql = "SELECT * FROM sent_transactions WHERE tx_hash = ?"
        return dict(db.execute(sql, (wanted,)).fetchone())

    return await store.sum(read)


BLOCK = Block(number=7, hash=tx_hash(7), timestamp=50)


def mined(transaction, **facts):
    return Receipt(tx_hash=transaction.tx_hash, succeeded=True, block=BLOCK, **facts)


async def test_once_a_version_of_a_nonce_is_known_the_others_are_not_asked_for(store):
    task = await settling(store)
    first, dearer = signed_transaction(0), signed_transaction(0, fee=200)
    await store.add_replacement(task.payment.id, dearer)
    assert await store.undated(9, []) == []
    await store.mark_mined(SIGNER, 1)
    assert set(await store.undated(9, [])) == {first.tx_hash, dearer.tx_hash}
    assert await store.undated(9, [first.tx_hash]) == [dearer.tx_hash]
    await store.note_mined(mined(dearer, fee_wei=6, l1_fee_wei=1))
    assert await store.undated(9, []) == []
    row = await row_of(store, dearer.tx_hash)
    assert (row["gas_wei"], row["l1_fee_wei"], row["mined_at"]) == (5, 1, 50.0)


async def test_a_backlog_is_read_in_one_look(store):
    """A hundred and twenty-five nonces; for one of them no endpoint has a receipt."""
    task = await settling(store)
    for nonce in range(1, 125):
        await store.add_replacement(task.payment.id, signed_transaction(nonce))
    await store.mark_mined(SIGNER, 125)
    lost = signed_transaction(7).tx_hash

    class Known:
        async def receipt(self, wanted):
            return None if wanted == lost else Receipt(tx_hash=wanted, succeeded=True, block=BLOCK)

    records = GasRecords(store, Known())
    records.pause_s = 0.0
    await records.complete()
    assert await store.undated(200, []) == [lost]


async def test_gas_that_no_column_holds_is_not_known(store):
    await settling(store)
    transaction = signed_transaction(0)
    await store.note_mined(mined(transaction, fee_wei=2**63, l1_fee_wei=-1))
    row = await row_of(store, transaction.tx_hash)
    assert (row["gas_wei"], row["l1_fee_wei"], row["succeeded"]) == (None, None, 1)


async def test_a_transaction_of_others_is_not_written_down(store):
    await store.note_mined(Receipt(tx_hash=tx_hash(99), succeeded=True, block=BLOCK))
    assert (
        await store.sum(
            lambda db: db.execute("SELECT count(*) FROM sent_transactions").fetchone()[0]
        )
        == 0
    )
