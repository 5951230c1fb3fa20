"""A COMMIT without an answer: which writes run again, and what a crash makes unknown."""

import pytest

from gateway.domain import PaymentState
from gateway.errors import StoreUnavailable
from gateway_nodes.postgres import pool
from gateway_nodes.postgres.failover import read_life
from gateway_nodes.postgres.session import connect
from gateway_nodes.postgres.store import PostgresStore
from gateway_testing.facts import (
    NOW,
    paying,
    queued,
    reserved,
    unsigned_transaction,
)
from tests.gateway.postgres.lossy_proxy import lossy_proxy
from tests.postgres_server import start_or_skip


async def test_after_a_crash_a_lost_commit_is_not_guessed(
    postgres_server, migrated_url, monkeypatch
):
    """The server may have given the transaction's number to another one."""
    async with (
        lossy_proxy(postgres_server, reaches_server=True) as proxy,
        PostgresStore(proxy.lead_to(migrated_url), connections=1) as store,
    ):
        task = await reserved(store)
        monkeypatch.setattr(pool, "read_life", lambda _: "after a crash")
        proxy.losses = 1
        with pytest.raises(StoreUnavailable):
            await store.release(task.payment.id, now=NOW)
        assert proxy.losses == 0
        assert not store.fitness.problem


@pytest.mark.parametrize("reaches_server", [True, False])
async def test_a_write_that_knows_itself_asks_for_no_transaction(
    postgres_server, migrated_url, monkeypatch, reaches_server
):
    """So it sells and signs once, even if the server crashed and the number is another one's."""

    def refuse(*_):
        raise AssertionError

    async with (
        lossy_proxy(postgres_server, reaches_server=reaches_server) as proxy,
        PostgresStore(proxy.lead_to(migrated_url), connections=1) as store,
    ):
        monkeypatch.setattr(pool.Pool, "_has_committed", refuse)
        proxy.losses = 1
        task = await reserved(store, 1)
        for _ in range(2):
            proxy.losses += 1
            sent = await store.begin_settling(task.payment.id, unsigned_transaction(), now=NOW)
        assert await store.unmined_of(task.payment.id, sent.signer) == sent
        proxy.losses += 1
        assert await store.settle(task.payment.id, paying(task), now=NOW)
        proxy.losses += 1
        assert (await queued(store, 2)).payment.state is PaymentState.SETTLED
        assert proxy.losses == 0
        assert (await store.counts())["payments"] == {"settled": 2}


def test_a_crash_and_no_clean_restart_begins_another_life():
    server = start_or_skip()
    try:
        lives = [_life_of(server) for _ in range(2)]
        server.crash()
        server.restart()
        lives.append(_life_of(server))
    finally:
        server.stop()
    assert lives[0] == lives[1] != lives[2]


def _life_of(server):
    with connect(server.address_of("postgres"), "test") as raw:
        return read_life(raw)
