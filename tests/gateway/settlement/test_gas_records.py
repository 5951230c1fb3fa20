"""Gas of settlements and refunds: stored with the receipt, completed in the background."""

import contextlib
import sqlite3

from gateway.running.core_parts import GasRecords
from tests.conftest import buy


async def sent(gateway) -> list[dict]:
    sql = "SELECT * FROM sent_transactions ORDER BY sent_at"

    def read(db: sqlite3.Connection):
        return [dict(row) for row in db.execute(sql)]

    return await gateway.services.store.sum(read)


async def paid_block(gateway) -> list:
    def read(db):
        return [row[0] for row in db.execute("SELECT paid_block FROM payments ORDER BY id")]

    return await gateway.services.store.sum(read)


async def test_a_settlement_keeps_its_gas_and_its_time(gateway, payer):
    answer = await buy(gateway, payer.header())
    await gateway.wait((await answer.get_json())["taskId"])
    (row,) = await sent(gateway)
    chain = gateway.services.chain
    receipt = await chain.receipt(row["tx_hash"])
    assert row["gas_wei"] == receipt.fee_wei > 0
    assert (row["l1_fee_wei"], row["mined_at"]) == (None, receipt.block.timestamp)
    assert (row["mined_block"], row["succeeded"]) == (receipt.block_number, 1)
    assert await paid_block(gateway) == [receipt.block_number]


async def test_a_direct_payment_keeps_its_block(gateway, payer):
    await gateway.services.payments.cutoff_block()
    paid = payer.transfer(20_000)
    body = {"slug": "picture", "prompt": "a boat", "txHash": paid}
    answer = await gateway.client.post("/api/proxy-generate", json=body)
    assert answer.status_code == 200
    receipt = await gateway.services.chain.receipt(paid)
    assert await paid_block(gateway) == [receipt.block_number]


async def test_a_transaction_without_a_receipt_is_asked_for_three_times(gateway, payer):
    await buy(gateway, payer.header())
    (row,) = await sent(gateway)
    store, chain = gateway.services.store, gateway.services.chain
    # A replaced block: the settlement's data is discarded.
    for below in (row["nonce"] + 1, row["nonce"], row["nonce"] + 1):
        await store.mark_mined(row["signer"], below)
    asked = []

    class Forgetful:
        async def receipt(self, tx):
            asked.append(tx)

    records = GasRecords(store, Forgetful())
    for _ in range(5):
        await records.complete()
    assert asked == [row["tx_hash"]] * 3
    assert await store.undated(9, []) == [row["tx_hash"]]
    await GasRecords(store, chain).complete()
    assert await store.undated(9, []) == []


async def test_one_look_asks_for_2000_transactions_without_receipts_at_most(
    gateway, payer, settings
):
    """After an upgrade of a large gateway whose endpoint keeps no old receipts."""
    answer = await buy(gateway, payer.header())
    await gateway.wait((await answer.get_json())["taskId"])
    (row,) = await sent(gateway)
    await gateway.silence_background()  # the sweep would see that these nonces are unused
    many = [
        {**row, "tx_hash": f"0x{number:064x}", "nonce": 1_000 + number, "sent_at": number}
        for number in range(2_100)
    ]
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    with contextlib.closing(sqlite3.connect(settings.data_dir / "gateway.db")) as db, db:
        db.executemany(f"INSERT INTO sent_transactions ({names}) VALUES ({values})", many)
        db.execute("UPDATE sent_transactions SET mined = 1, mined_at = NULL WHERE nonce >= 1000")
    asked = []

    class Forgetful:
        async def receipt(self, tx):
            asked.append(tx)

    records = GasRecords(gateway.services.store, Forgetful())
    records.pause_s = 0.0
    await records.complete()
    assert len(asked) == len(set(asked)) == 2_000


async def test_a_nonce_that_is_unused_again_forgets_what_was_read(gateway, payer):
    await buy(gateway, payer.header())
    (row,) = await sent(gateway)
    store = gateway.services.store
    await store.mark_mined(row["signer"], row["nonce"] + 1)
    await store.mark_mined(row["signer"], row["nonce"])
    (row,) = await sent(gateway)
    assert (row["mined"], row["gas_wei"], row["mined_block"]) == (0, None, None)
