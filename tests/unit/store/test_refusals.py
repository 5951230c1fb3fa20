"""A refused write leaves nothing behind on the write connection of SQLite."""

import sqlite3

import attrs
import pytest

from gateway.contracts.store import PayerBusy, ReserveLimits
from gateway.errors import InsufficientPayment
from gateway.store.sqlite.store import SqliteStore
from gateway_testing.facts import (
    NOW,
    authorization,
    key_of,
    new_task,
    reserved,
    signed_transaction,
    transfer,
    tx_hash,
    unsigned_transaction,
)

_LIMITS = ReserveLimits(
    most_open=1, balance_units=10**9, held_file_bytes=10**9, barred_since=NOW - 1
)


async def _refuse_reserve(store):
    signed = authorization(2)
    with pytest.raises(PayerBusy) as error:
        await store.reserve(new_task(), signed, key_of(signed), 7, None, _LIMITS)
    return error


async def _refuse_direct(store):
    with pytest.raises(InsufficientPayment) as error:
        await store.accept_direct(new_task(), tx_hash(77), [transfer(77, units=1)], "key")
    return error


@pytest.mark.parametrize("refuse", [_refuse_reserve, _refuse_direct])
async def test_after_a_refusal_and_anothers_commit_the_store_still_writes(tmp_path, refuse):
    """An unread SELECT would keep its snapshot, on which nothing can be written any more."""
    async with SqliteStore(tmp_path / "gateway.db") as store:
        await reserved(store, 1)
        # Its traceback keeps the frames, and what they have read.
        kept = await refuse(store)
        with sqlite3.connect(tmp_path / "gateway.db") as other:
            other.execute("INSERT INTO meta (key, value) VALUES ('other', '1')")
        other.close()
        assert await reserved(store, 3) is not None
        del kept


async def test_for_a_closed_payment_nothing_is_signed(tmp_path):
    async with SqliteStore(tmp_path / "gateway.db") as store:
        task = await reserved(store)
        await store.release(task.payment.id, now=NOW)
        signed = []

        def sign(nonce):
            signed.append(nonce)
            return signed_transaction(nonce)

        unsigned = attrs.evolve(unsigned_transaction(), sign=sign)
        with pytest.raises(RuntimeError):
            await store.begin_settling(task.payment.id, unsigned, now=NOW)
        assert signed == []
