"""Contract of every store: amounts that only one buyer pays."""

import asyncio

import attrs
import pytest

from gateway.errors import InvalidPayment
from gateway.store import SqlStore
from gateway.store.reserved_amounts import ReservedAmount, holder_of
from gateway_testing.facts import NOW, PRICE, new_task, transfer, tx_hash

_KEY, _OTHER = "the buyer's secret key", "another buyer's key"
_AMOUNT = ReservedAmount(units=PRICE + 437, from_block=5, pay_by=NOW + 1800, ends_at=NOW + 90_000)


async def _reserve(store: SqlStore, key: str, *marks: int) -> ReservedAmount | None:
    amounts = [attrs.evolve(_AMOUNT, units=PRICE + mark) for mark in marks]
    return await store.reserve_amount(holder_of(key), amounts, NOW)


class AmountsContract:
    """Reserved amounts, and which request may buy with a transfer of one."""

    async def test_an_amount_is_reserved_once(self, store: SqlStore) -> None:
        found = await asyncio.gather(*(_reserve(store, f"key {one}", 437) for one in range(20)))
        assert [one for one in found if one is not None] == [_AMOUNT]

    async def test_the_next_free_amount_is_taken(self, store: SqlStore) -> None:
        await _reserve(store, _KEY, 437)
        other = await _reserve(store, _OTHER, 437, 438)
        assert other == attrs.evolve(_AMOUNT, units=PRICE + 438)

    async def test_a_repeat_gets_the_amount_it_has(self, store: SqlStore) -> None:
        first = await _reserve(store, _KEY, 437, 438)
        assert await _reserve(store, _KEY, 437, 438) == first
        assert await _reserve(store, _OTHER, 438) is not None

    async def test_an_amount_is_found_by_its_holder_until_it_ends(self, store: SqlStore) -> None:
        await _reserve(store, _KEY, 437)
        find = store.find_amounts
        assert await find(holder_of(_KEY), NOW) == [_AMOUNT]
        assert await find(holder_of(_OTHER), NOW) == []
        assert await find(holder_of(_KEY), _AMOUNT.ends_at) == []

    async def test_the_newest_amount_of_a_holder_comes_first(self, store: SqlStore) -> None:
        await _reserve(store, _KEY, 437)
        newer = attrs.evolve(_AMOUNT, units=PRICE + 2, from_block=9, pay_by=NOW + 2000)
        await store.reserve_amount(holder_of(_KEY), [newer], NOW)
        assert await store.find_amounts(holder_of(_KEY), NOW) == [newer, _AMOUNT]

    async def test_the_first_awaited_block_is_found(self, store: SqlStore) -> None:
        assert await store.find_first_block(NOW) is None
        await _reserve(store, _KEY, 437)
        later = attrs.evolve(_AMOUNT, units=PRICE + 2, from_block=9, ends_at=NOW + 100_000)
        await store.reserve_amount(holder_of(_OTHER), [later], NOW)
        assert await store.find_first_block(NOW) == 5
        assert await store.find_first_block(_AMOUNT.ends_at) == 9

    async def test_an_amount_that_ended_is_free_again(self, store: SqlStore) -> None:
        await _reserve(store, _KEY, 437)
        later = attrs.evolve(_AMOUNT, ends_at=NOW + 200_000)
        assert await store.reserve_amount(holder_of(_OTHER), [later], NOW + 90_000) == later

    async def test_only_the_holder_buys_with_a_reserved_amount(self, store: SqlStore) -> None:
        await _reserve(store, _KEY, 437)
        paid = [transfer(1, units=_AMOUNT.units)]
        for key in (None, _OTHER):
            with pytest.raises(InvalidPayment, match="reserved for another purchase"):
                await store.accept_direct(new_task(), tx_hash(1), paid, key)
        task = await store.accept_direct(new_task(), tx_hash(1), paid, _KEY)
        assert (task.payment.price_units, task.payment.paid_units) == (PRICE + 437, PRICE + 437)

    async def test_the_senders_signature_is_enough(self, store: SqlStore) -> None:
        await _reserve(store, _KEY, 437)
        paid = [transfer(1, units=_AMOUNT.units)]
        assert await store.accept_direct(new_task(), tx_hash(1), paid, None, is_proven=True)

    async def test_a_transfer_beside_a_reserved_one_pays(self, store: SqlStore) -> None:
        await _reserve(store, _KEY, 437)
        paid = [transfer(1, 0, units=_AMOUNT.units), transfer(1, 1, units=PRICE)]
        task = await store.accept_direct(new_task(), tx_hash(1), paid, None)
        assert task.payment.paid_units == PRICE

    async def test_after_its_end_an_amount_is_as_any_other(self, store: SqlStore) -> None:
        await _reserve(store, _KEY, 437)
        late = attrs.evolve(new_task(), created_at=_AMOUNT.ends_at)
        paid = [transfer(1, units=_AMOUNT.units)]
        assert await store.accept_direct(late, tx_hash(1), paid, None)
