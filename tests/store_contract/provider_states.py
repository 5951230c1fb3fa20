"""Contract of every store: providers' states, shared between nodes."""

from gateway.store import SqlStore
from gateway_nodes.provider_states import (
    OffSale,
    OnSale,
    Paused,
    ProviderState,
    Report,
    SqlProviderStates,
)

_NAME = "provider:acme:acme"


def states_of(store: SqlStore) -> SqlProviderStates:
    """The states in a store's database, as one of its nodes reads them."""
    return SqlProviderStates(store.read, store.write, store.nodes.name)


async def _reported(store: SqlStore, *reports: Report) -> ProviderState:
    """Report states; return what all nodes then know of the provider."""
    (state,) = (await states_of(store).exchange(reports)).states
    return state


def _off(reason: str = "402: top up", off_for_s: float = 900.0) -> OffSale:
    return OffSale(name=_NAME, reason=reason, off_for_s=off_for_s)


class ProviderStatesContract:
    """Off sale, on sale again, and paused, by the database's clock."""

    async def test_nothing_is_known_of_providers_at_first(self, store: SqlStore) -> None:
        assert (await states_of(store).exchange([])).states == []

    async def test_a_provider_is_off_sale_until_it_is_put_back(self, store: SqlStore) -> None:
        off = await _reported(store, _off())
        assert (off.name, off.off_reason) == (_NAME, "402: top up")
        assert 890 < off.off_for_s <= 900
        on = await _reported(store, OnSale(name=_NAME, epoch=off.epoch))
        assert on.off_reason is None
        assert on.epoch > off.epoch
        # A second node reports the same: nothing changes.
        assert (await _reported(store, OnSale(name=_NAME, epoch=off.epoch))).epoch == on.epoch

    async def test_who_puts_back_what_was_taken_off_anew_is_not_heard(
        self, store: SqlStore
    ) -> None:
        first = await _reported(store, _off())
        second = await _reported(store, _off("401: no such key"))
        assert second.epoch > first.epoch
        late = await _reported(store, OnSale(name=_NAME, epoch=first.epoch))
        assert (late.off_reason, late.epoch) == ("401: no such key", second.epoch)

    async def test_a_rest_that_is_over_waits_for_who_puts_it_back(self, store: SqlStore) -> None:
        state = await _reported(store, _off(off_for_s=-60))
        assert state.off_for_s < -50
        assert state.off_reason is not None

    async def test_the_longest_pause_counts_and_changes_no_epoch(self, store: SqlStore) -> None:
        long = await _reported(store, Paused(name=_NAME, pause_s=100))
        short = await _reported(store, Paused(name=_NAME, pause_s=5))
        assert 90 < short.pause_s <= long.pause_s <= 100
        off = await _reported(store, _off())
        assert off.epoch > short.epoch
        assert 90 < off.pause_s <= 100
        assert (await _reported(store, Paused(name=_NAME, pause_s=200))).epoch == off.epoch

    async def test_a_vendors_words_are_cut_and_kept(self, store: SqlStore) -> None:
        state = await _reported(store, _off("top \0 up " + "x" * 10_000))
        assert state.off_reason is not None
        assert state.off_reason.startswith("top ")
        assert len(state.off_reason) <= 500
