"""PostgresStore: the contract of every store, and faults that need several nodes."""

import asyncio
import secrets

import psycopg
import pytest

from gateway.contracts import SignedTransaction
from gateway.contracts.store import PayerBusy, ReserveLimits
from gateway.domain import Attachment, GenerationRequest, Handle, Task
from gateway.errors import (
    ExecutionError,
    RefundRefused,
    SettingsError,
    StoreUnavailable,
    TxAlreadyUsed,
)
from gateway.store import meta
from gateway_nodes.postgres import pool
from gateway_nodes.postgres.store import PostgresStore
from gateway_testing.facts import (
    NOW,
    RESULT,
    SIGNER,
    WALLET,
    authorization,
    key_of,
    kinds,
    new_task,
    reserved,
    signed_transaction,
    transfer,
    tx_hash,
    unsigned_batch,
    unsigned_transaction,
)
from tests.gateway.postgres.lossy_proxy import lossy_proxy
from tests.store_contract.contract import StoreContract


class TestPostgresStore(StoreContract):
    @pytest.fixture
    async def store(self, migrated_url):
        async with PostgresStore(migrated_url) as opened:
            yield opened


# -- several nodes


@pytest.fixture
async def nodes(migrated_url):
    """Two stores on one database, like two machines."""
    async with (
        PostgresStore(migrated_url, node="a") as one,
        PostgresStore(migrated_url, node="b") as other,
    ):
        yield one, other


async def test_nodes_that_start_at_once_make_one_schema(database_url):
    async def start(node):
        async with PostgresStore(database_url, node=node) as store:
            return await store.meta("secret", lambda: node)

    assert len(set(await asyncio.gather(*map(start, "abcd")))) == 1


async def test_a_transaction_pays_once_on_whichever_node(nodes):
    outcomes = await asyncio.gather(
        *(accept(store, number) for number in range(20) for store in nodes), return_exceptions=True
    )
    assert kinds(outcomes).count(Task) == 20
    assert kinds(outcomes).count(TxAlreadyUsed) == 20


async def accept(store, number):
    return await store.accept_direct(
        new_task(id=f"{secrets.token_hex(12)}"), tx_hash(number), [transfer(number)], None
    )


async def test_nonces_of_one_key_have_no_gap_and_no_double_over_nodes(nodes):
    tasks = [await reserved(nodes[0], nonce) for nonce in range(40)]
    sent = await asyncio.gather(
        *(
            nodes[number % 2].begin_settling(task.payment.id, unsigned_transaction(7), now=NOW)
            for number, task in enumerate(tasks)
        )
    )
    assert sorted(one.nonce for one in sent) == list(range(7, 47))


async def test_two_nodes_with_a_key_each_sign_for_no_payment_twice(nodes):
    ids = [(await reserved(nodes[0], nonce)).payment.id for nonce in range(12)]
    alone = [
        nodes[number % 2].begin_settling(each, unsigned_transaction(signer=WALLET), now=NOW)
        for number, each in enumerate(ids)
    ]
    batches = [
        nodes[number % 2].begin_batch(unsigned_batch(*ids[at : at + 6], fee=1000 + at), now=NOW)
        for number, at in enumerate((0, 3, 6))
    ]
    other = nodes[1].begin_batch(unsigned_batch(*ids, signer=WALLET, fee=2000), now=NOW)
    await asyncio.gather(*batches, other, *alone)
    assert [await nodes[0].nonces_of(each, SIGNER, WALLET) for each in ids] == [1] * 12


async def test_a_payer_has_no_more_open_than_allowed_over_nodes(nodes):
    limits = ReserveLimits(most_open=3, balance_units=10**9, held_file_bytes=10**6)

    async def reserve(number):
        signed = authorization(number)
        task = new_task(id=secrets.token_hex(12))
        store = nodes[number % 2]
        return await store.reserve(task, signed, key_of(signed), 0, limits=limits)

    outcomes = await asyncio.gather(*map(reserve, range(30)), return_exceptions=True)
    assert kinds(outcomes).count(Task) == 3
    assert kinds(outcomes).count(PayerBusy) == 27


async def test_the_days_cap_of_refunds_holds_over_nodes(nodes):
    owed = [await owed_refund(nodes[0], number) for number in range(10)]

    async def begin(number, case):
        return await nodes[number % 2].refunds.begin(
            case.payment.id,
            signed_transaction(number),
            sender=SIGNER,
            recipient=case.recipient,
            search_from_block=0,
            cap_units=3 * case.amount_units,
            now=NOW,
        )

    begun = [begin(*each) for each in enumerate(owed)]
    outcomes = await asyncio.gather(*begun, return_exceptions=True)
    assert kinds(outcomes).count(SignedTransaction) == 3
    assert kinds(outcomes).count(RefundRefused) == 7


async def owed_refund(store, number):
    await accept(store, number)
    (lease,) = await store.queue.lease(1, lease_s=60, now=NOW)
    assert await store.queue.fail(lease, details="x", error="y", now=NOW)
    case = await store.refunds.case(lease.task_id)
    assert case is not None
    return case


async def test_a_task_is_leased_by_one_node(nodes):
    for number in range(30):
        await accept(nodes[0], number)
    leases = await asyncio.gather(
        *(store.queue.lease(4, lease_s=60, now=NOW + 1) for _ in range(6) for store in nodes)
    )
    found = [lease.task_id for batch in leases for lease in batch]
    assert len(found) == len(set(found))
    assert len(found) + len(await nodes[0].queue.lease(99, lease_s=60, now=NOW + 1)) == 30


@pytest.mark.parametrize("limit", [3, 10])
async def test_logins_are_counted_over_nodes(nodes, limit):
    attempts = [
        nodes[number % 2].count_attempt("1.2.3.4", limit=limit, window_s=60, now=NOW)
        for number in range(40)
    ]
    assert (await asyncio.gather(*attempts)).count(0) == limit


@pytest.mark.parametrize("without", ["locks", "snapshots"])
async def test_these_tests_see_a_store_that_lets_two_writes_pass(nodes, monkeypatch, without):
    """Without its locks, or without one state per write, the cap is exceeded."""
    if without == "locks":
        monkeypatch.setattr(pool, "locks_of", lambda *_: [])
    else:
        monkeypatch.setattr(pool, "locks_of", lambda *_: [])
        monkeypatch.setattr(pool, "_READ_COMMITTED", {meta.count_login_attempt})
    passed = 0
    for number in range(20):
        attempts = [
            nodes[one % 2].count_attempt(f"1.2.3.{number}", limit=1, window_s=60, now=NOW)
            for one in range(8)
        ]
        passed = max(passed, (await asyncio.gather(*attempts)).count(0))
    assert passed > 1


# -- a server that goes away


async def test_a_crash_of_the_server_loses_nothing_that_was_answered(postgres_server, migrated_url):
    async with PostgresStore(migrated_url) as store:
        task = await accept(store, 1)
        await asyncio.to_thread(postgres_server.crash)
        waiting = asyncio.create_task(store.task(task.id))
        await asyncio.to_thread(postgres_server.restart)
        assert await waiting == task
        with pytest.raises(TxAlreadyUsed):
            await accept(store, 1)


async def test_a_server_that_is_gone_is_one_sentence(postgres_server, migrated_url, monkeypatch):
    monkeypatch.setattr(pool, "_TIMEOUT_S", 0.2)
    async with PostgresStore(migrated_url) as store:
        await asyncio.to_thread(postgres_server.crash)
        try:
            with pytest.raises(StoreUnavailable, match="never charged twice"):
                await accept(store, 1)
            with pytest.raises(StoreUnavailable):
                await store.task("x")
        finally:
            await asyncio.to_thread(postgres_server.restart)
        assert await store.task("x") is None


@pytest.mark.parametrize("reaches_server", [True, False])
async def test_a_commit_without_an_answer_is_looked_up(
    postgres_server, migrated_url, reaches_server
):
    """Whether or not it was committed, the buyer gets its task, once."""
    async with lossy_proxy(postgres_server, reaches_server=reaches_server) as proxy:
        address = proxy.lead_to(migrated_url)
        async with PostgresStore(address, connections=1) as store:
            proxy.losses = 1
            task = await accept(store, 1)
            assert proxy.losses == 0
            assert (await store.task(task.id)) == task
            assert await store.counts() == {"tasks": {"queued": 1}, "payments": {"settled": 1}}


async def test_a_lost_commit_of_each_write_is_answered_as_it_was(postgres_server, migrated_url):
    async with (
        lossy_proxy(postgres_server, reaches_server=True) as proxy,
        PostgresStore(proxy.lead_to(migrated_url), connections=1) as store,
    ):
        await accept(store, 1)
        (lease,) = await store.queue.lease(1, lease_s=60, now=NOW)
        proxy.losses = 1
        # A second run would find the lease gone, and the worker would drop its outputs.
        assert await store.queue.complete(lease, RESULT, expires_at=NOW + 9, now=NOW)
        assert proxy.losses == 0


async def test_after_a_standby_took_over_a_lost_commit_is_not_guessed(
    postgres_server, migrated_url, monkeypatch
):
    """The new server may have given the transaction's number to another one."""
    async with (
        lossy_proxy(postgres_server, reaches_server=True) as proxy,
        PostgresStore(proxy.lead_to(migrated_url), connections=1) as store,
    ):
        await store.ping()
        monkeypatch.setattr(pool, "read_server", lambda _: "another server")
        proxy.losses = 1
        with pytest.raises(StoreUnavailable):
            await accept(store, 1)
        assert proxy.losses == 0


async def test_the_files_of_unpaid_tasks_stay_below_their_bound_over_nodes(nodes):
    limits = ReserveLimits(most_open=3, balance_units=10**9, held_file_bytes=3_500)

    async def reserve(number):
        signed = authorization(number, sender="0x" + f"{number + 1:040x}")
        task = new_task(
            id=secrets.token_hex(12),
            request=GenerationRequest(attachment=Attachment(name="a.pdf", data=b"x" * 1_000)),
        )
        store = nodes[number % 2]
        return await store.reserve(task, signed, key_of(signed), 0, limits=limits)

    outcomes = await asyncio.gather(*map(reserve, range(20)), return_exceptions=True)
    assert kinds(outcomes).count(Task) == 3
    assert kinds(outcomes).count(ExecutionError) == 17


async def test_an_unlock_without_an_answer_does_not_run_the_write_again(
    postgres_server, migrated_url
):
    async with (
        lossy_proxy(postgres_server, reaches_server=False, loses=b"pg_advisory_unlock") as proxy,
        PostgresStore(proxy.lead_to(migrated_url), connections=1) as store,
    ):
        proxy.losses = 1
        attempt = store.count_attempt("1.2.3.4", limit=2, window_s=60, now=NOW)
        assert await attempt == 0
        assert proxy.losses == 0
        # One attempt was counted, so there is one left.
        assert await store.count_attempt("1.2.3.4", limit=2, window_s=60, now=NOW) == 0
        assert await store.count_attempt("1.2.3.4", limit=2, window_s=60, now=NOW) > 0


async def test_nul_is_found_nowhere_and_stored_as_a_sign(migrated_url):
    async with PostgresStore(migrated_url) as store:
        assert await store.task("\0") is None
        await accept(store, 1)
        (lease,) = await store.queue.lease(1, lease_s=60, now=NOW)
        assert await store.queue.fail(lease, details="x", error="a\0b", now=NOW)
        failed = await store.task(lease.task_id)
        assert failed is not None
        assert failed.error == "a\ufffdb"


@pytest.mark.parametrize("job_id", ["a\0b", "\ud800", "x" * 15_000])
async def test_whatever_a_vendor_calls_its_job_the_handle_is_kept(migrated_url, job_id):
    async with PostgresStore(migrated_url) as store:
        await accept(store, 1)
        (lease,) = await store.queue.lease(1, lease_s=60, now=NOW)
        assert await store.queue.save_handle(lease, Handle(id=job_id))
        jobs = await store.jobs_of([lease.task_id])
        assert jobs[lease.task_id].handle == Handle(id=job_id)


async def test_a_database_of_another_program_is_left_alone(database_url):
    with psycopg.connect(database_url) as raw:
        raw.execute("CREATE TABLE payments (id int)")
    with pytest.raises(SettingsError, match="another program"):
        async with PostgresStore(database_url):
            pass


async def test_a_database_of_a_newer_release_stops_the_start(migrated_url):
    async with PostgresStore(migrated_url) as store:
        await store.ping()
    with psycopg.connect(migrated_url) as raw:
        raw.execute("UPDATE schema_version SET number = 9999")
        raw.execute("UPDATE meta SET value = '9999' WHERE key = 'readable_by'")
    with pytest.raises(SettingsError, match="version 9999"):
        async with PostgresStore(migrated_url):
            pass


async def test_a_database_of_a_development_version_stops_the_start_and_stays(migrated_url):
    async with PostgresStore(migrated_url) as store:
        await store.ping()
    with psycopg.connect(migrated_url) as raw:
        raw.execute("UPDATE schema_version SET number = 11")
        raw.execute("UPDATE meta SET value = '7' WHERE key = 'readable_by'")
        raw.execute("DELETE FROM meta WHERE key = 'schema_base'")
    with pytest.raises(SettingsError, match="of version 11 of a development version"):
        async with PostgresStore(migrated_url):
            pass
    with psycopg.connect(migrated_url) as raw:
        assert raw.execute("SELECT number FROM schema_version").fetchone() == (11,)


async def test_an_address_without_a_server_stops_the_start_without_its_password(tmp_path):
    address = f"postgresql://gateway:hunter2@/gateway?host={tmp_path}"
    with pytest.raises(SettingsError, match="does not answer") as caught:
        async with PostgresStore(address):
            pass
    assert "hunter2" not in str(caught.value)
