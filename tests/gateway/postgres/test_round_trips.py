"""How often a write waits for the server, and the statements that are sent together."""

import asyncio
import contextlib
import enum

import attrs
import psycopg
import pytest
from psycopg import errors

from gateway.errors import StoreUnavailable
from gateway_nodes.postgres.batch import Batch
from gateway_nodes.postgres.session import Session, connect
from gateway_nodes.postgres.signing import SigningQueues
from gateway_nodes.postgres.store import PostgresStore
from gateway_testing.facts import (
    NOW,
    RESULT,
    paying,
    queued,
    reserved,
    unsigned_transaction,
)
from tests.conftest import running


@pytest.fixture
def raw(migrated_url):
    with connect(migrated_url, "test") as raw:
        yield raw


@pytest.fixture
def batch(raw):
    return Batch(raw)


@pytest.fixture
def trips(monkeypatch):
    """The texts that writes have sent, one for each round trip."""
    found = []
    send = Batch.send

    def counted(self):
        if self._texts:
            found.append(b"; ".join(self._texts).decode())
        send(self)

    monkeypatch.setattr(Batch, "send", counted)
    return found


async def test_each_write_of_a_sale_takes_one_or_two_round_trips(migrated_url, trips):
    async with PostgresStore(migrated_url) as store:
        task = await reserved(store)
        assert len(trips) == 2
        trips.clear()
        await store.begin_settling(task.payment.id, unsigned_transaction(), now=NOW)
        assert len(trips) == 2
        assert "pg_advisory_lock(" in trips[0]
        assert "COMMIT; SELECT pg_advisory_unlock_all()" in trips[1]
        trips.clear()
        assert await store.settle(task.payment.id, paying(task), now=NOW)
        assert len(trips) == 1


async def test_each_write_of_a_task_takes_one_round_trip_and_its_lease_two(migrated_url, trips):
    async with PostgresStore(migrated_url) as store:
        await queued(store)
        trips.clear()
        (lease,) = await store.queue.lease(1, lease_s=60, now=NOW)
        assert len(trips) == 2
        trips.clear()
        assert await store.queue.begin_submit(lease, now=NOW)
        assert len(trips) == 1
        assert await store.queue.complete(lease, RESULT, expires_at=NOW + 9, now=NOW)
        assert len(trips) == 2


@pytest.fixture
def read_texts(monkeypatch):
    """The statements of reads, one for each round trip."""
    found = []
    execute = Session.execute

    def recorded(self, sql, parameters=(), /, **more):
        found.append(sql)
        return execute(self, sql, parameters, **more)

    monkeypatch.setattr(Session, "execute", recorded)
    return found


def _count(texts, part):
    return sum(part in text for text in texts)


async def test_a_sale_looks_its_payment_up_once(
    settings, provider, payer, database_url, read_texts
):
    settings = attrs.evolve(settings, database_url=database_url, node="a")
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    async with running(settings, provider) as gateway:
        for path, paid, headers in (
            ("/api/x402/picture", {}, {"X-PAYMENT": payer.header()}),
            ("/api/proxy-generate", {"slug": "picture", "txHash": payer.transfer(20_000)}, {}),
        ):
            read_texts.clear()
            body = {"prompt": "a boat"} | paid
            answer = await gateway.client.post(path, json=body, headers=headers)
            assert answer.status_code == 200, await answer.get_json()
            assert _count(read_texts, "JOIN claims c") == 1
            # T1 judges the payer, in its own round trip.
            assert _count(read_texts, "failure IN") == 0


def test_a_statement_is_sent_when_a_result_is_read(batch, trips):
    one = batch.add("SELECT CAST(? AS BIGINT) + 1 AS a", (2**40,))
    two = batch.add("SELECT :b || :a || :b AS b", {"a": "it's ?:a %", "b": "\\"})
    three = batch.add("SELECT 1 WHERE 1 = 0")
    assert trips == []
    assert two.fetchone()["b"] == "\\it's ?:a %\\"
    assert [row["a"] for row in one] == [2**40 + 1]
    assert (three.fetchone(), three.rowcount) == (None, 0)
    assert len(trips) == 1


_VALUES = [
    None,
    0,
    -1,
    2**63 - 1,
    1.5,
    1e300,
    "",
    "\ud7ff'",
    "a\\'b",
    b"",
    b"\x00\xff",
    b"x" * 90_000,
    "x" * 90_000,
    "'); DELETE FROM meta; --",
    "\\'; DELETE FROM meta; --",
]


@pytest.mark.parametrize("value", _VALUES)
def test_a_value_arrives_as_it_was(batch, value):
    kind = {int: "BIGINT", float: "DOUBLE PRECISION", bytes: "BYTEA"}.get(type(value), "TEXT")
    found = batch.add(f"SELECT CAST(? AS {kind}) AS a", (value,)).fetchone()["a"]
    assert (bytes(found) if isinstance(value, bytes) else found) == value


def test_after_an_error_the_connection_prepares_its_statements_again(raw, batch):
    batch.add("INSERT INTO meta (key, value) VALUES (?, ?)", ("a", "b"))
    batch.add("INSERT INTO meta (key, value) VALUES (?, ?)", ("a", "b"))
    behind = batch.add("SELECT value FROM meta WHERE key = ?", ("a",))
    with pytest.raises(errors.UniqueViolation):
        behind.fetchone()
    batch.forget()
    assert batch.add("SELECT value FROM meta WHERE key = ?", ("a",)).fetchone() is None


async def test_a_refused_write_prepares_nothing_again(migrated_url, trips):
    async with PostgresStore(migrated_url, connections=1) as store:
        task = await reserved(store)
        await store.release(task.payment.id, now=NOW)
        # psycopg prepares reads itself by now, and discards all statements at its ROLLBACK.
        for _ in range(9):
            await store.find_claim("auth:unknown")
        for _ in range(3):
            trips.clear()
            with pytest.raises(RuntimeError):
                await store.begin_settling(task.payment.id, None, now=NOW)
        assert trips != []
        assert "PREPARE" not in " ".join(trips)


async def test_a_write_survives_the_loss_of_its_prepared_statements(migrated_url):
    async with PostgresStore(migrated_url, connections=1) as store:
        await reserved(store, 1)
        await store._short_read(lambda db: db.execute("DEALLOCATE ALL"))
        assert await reserved(store, 2) is not None


def test_a_connection_with_many_uncertain_statements_is_closed(raw, batch):
    for number in range(61):
        batch.add(f"SELECT CAST(? AS BIGINT) / 0 + {number}", (1,))
        with pytest.raises(errors.DivisionByZero):
            batch.send()
        batch.forget()
    assert raw.closed


def test_a_connection_keeps_a_limited_number_of_prepared_statements(raw, batch):
    for number in range(100):
        assert batch.add(f"SELECT CAST(? AS BIGINT) + {number} AS a", (1,)).fetchone()["a"] > 0
    (count,) = raw.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
    assert count <= 70


@pytest.mark.parametrize("end", [" -- a comment", "", "\n"])
def test_a_comment_hides_no_other_statement(raw, batch, end):
    batch.add("BEGIN")
    batch.add("INSERT INTO meta (key, value) VALUES ('a', 'b')" + end)
    batch.add("COMMIT")
    batch.send()
    raw.execute("ROLLBACK")
    assert batch.add("SELECT value FROM meta WHERE key = 'a'").fetchone()["value"] == "b"


@pytest.mark.parametrize("text", ["SELECT 1; SELECT 2", "-- only a comment"])
def test_a_text_that_is_not_one_statement_is_an_error(batch, text):
    batch.add("SELECT 1")
    batch.add(text)
    batch.add("SELECT 2")
    with pytest.raises(psycopg.ProgrammingError):
        batch.send()


async def test_a_write_that_hides_its_error_is_not_taken_for_committed(migrated_url):
    def hide(db):
        assert db.execute("SELECT 1").fetchone()
        with contextlib.suppress(errors.DivisionByZero):
            db.execute("SELECT 1 / 0").fetchone()

    async with PostgresStore(migrated_url) as store:
        with pytest.raises(errors.InFailedSqlTransaction):
            await store._write(hide)
        assert await reserved(store) is not None


async def test_an_enumerated_text_is_stored_as_its_value(batch):
    class Color(str, enum.Enum):  # noqa: UP042 - as in a plugin
        RED = "red"

    assert batch.add("SELECT CAST(? AS TEXT) AS a", (Color.RED,)).fetchone()["a"] == "red"


def test_a_session_may_have_statements_of_an_earlier_client(raw, batch):
    for each in (batch, Batch(raw)):
        assert each.add("SELECT CAST(? AS BIGINT) AS a", (1,)).fetchone()["a"] == 1


async def _sign(store, payment_id, **changes):
    unsigned = attrs.evolve(unsigned_transaction(), **changes)
    return await store.begin_settling(payment_id, unsigned, now=NOW)


def _stop(_):
    raise StopIteration


async def test_in_a_group_an_error_concerns_its_own_payment(migrated_url):
    async with PostgresStore(migrated_url) as store:
        ids = [(await reserved(store, number)).payment.id for number in range(3)]
        outcomes = await asyncio.gather(
            _sign(store, ids[0]),
            _sign(store, 10**9),
            _sign(store, ids[1], sign=_stop),
            _sign(store, ids[2], used_nonces=7),
            _sign(store, ids[2]),
            return_exceptions=True,
        )
        kinds = [type(each).__name__ for each in outcomes]
        assert kinds == ["SignedTransaction", *["RuntimeError"] * 3, "SignedTransaction"]


async def test_callers_of_a_cancelled_group_get_an_answer():
    begun = asyncio.Event()

    async def begin(_):
        begun.set()
        await asyncio.Event().wait()

    queues = SigningQueues(begin)
    first = asyncio.create_task(queues.sign(1, unsigned_transaction(), NOW))
    await begun.wait()
    second = asyncio.create_task(queues.sign(2, unsigned_transaction(), NOW))
    await asyncio.sleep(0)
    for work in asyncio.all_tasks():
        if work.get_name().startswith("sign-"):
            work.cancel()
    outcomes = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(each) for each in outcomes] == [StoreUnavailable] * 2


async def test_every_payment_of_a_failed_group_gets_the_error():
    async def begin(_):
        raise StoreUnavailable

    queues = SigningQueues(begin)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await queues.sign(1, unsigned_transaction(), NOW)
