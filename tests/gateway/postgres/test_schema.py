"""Both databases have the same tables, columns, keys and indexes, and refuse the same changes."""

import contextlib
import itertools
import sqlite3

import psycopg
import pytest

from gateway.domain import PaymentState, TaskStatus
from gateway.store.sqlite import migrations as on_sqlite
from gateway_nodes.postgres import migrations as on_postgres
from gateway_nodes.postgres.session import Session, connect

# PostgreSQL's only: SQLite keeps the number in its file.
_OWN_TABLES = {"schema_version"}
_KINDS = {"bigint": "INTEGER", "double precision": "REAL", "text": "TEXT", "bytea": "BLOB"}


@pytest.fixture
def lite():
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        on_sqlite.migrate(db)
        db.row_factory = sqlite3.Row
        yield db


@pytest.fixture
def raw(database_url):
    with contextlib.closing(connect(database_url, "test")) as raw:
        on_postgres.migrate(raw)
        yield raw


def test_the_newest_files_have_one_number():
    assert on_sqlite.migrations()[-1][0] == on_postgres.migrations()[-1][0]


def test_tables_and_columns_are_the_same(lite, raw):
    on_lite = {
        (table, column["name"]): (column["type"], bool(column["notnull"] or column["pk"]))
        for table in tables_of(lite)
        for column in lite.execute(f"PRAGMA table_info({table})")
    }
    found = {
        (table, name): (_KINDS[kind], nullable == "NO")
        for table, name, kind, nullable in raw.execute(
            """SELECT table_name, column_name, data_type, is_nullable
               FROM information_schema.columns WHERE table_schema = 'public'"""
        )
        if table not in _OWN_TABLES
    }
    assert found == on_lite


def tables_of(lite):
    return [row[0] for row in lite.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


def test_keys_are_the_same(lite, raw):
    assert keys_of_postgres(raw) == keys_of_sqlite(lite)


def keys_of_sqlite(lite):
    """Return (table, columns) of every primary key, unique column and unique index."""
    keys = set()
    for table in tables_of(lite):
        columns = lite.execute(f"PRAGMA table_info({table})").fetchall()
        primary = sorted((row["pk"], row["name"]) for row in columns if row["pk"])
        if primary:
            keys.add((table, tuple(name for _, name in primary)))
        for index in lite.execute(f"PRAGMA index_list({table})").fetchall():
            if index["unique"]:
                parts = lite.execute(f"PRAGMA index_info({index['name']})")
                keys.add((table, tuple(part["name"] for part in parts)))
    return keys


def keys_of_postgres(raw):
    return {
        (table, tuple(columns))
        for table, columns in raw.execute(
            """SELECT c.relname, array_agg(a.attname::text ORDER BY k.n)
               FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
               CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, n)
               JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
               WHERE i.indisunique AND c.relnamespace = 'public'::regnamespace
               GROUP BY i.indexrelid, c.relname"""
        )
        if table not in _OWN_TABLES
    }


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        ("index", "SELECT indexname FROM pg_indexes WHERE schemaname = 'public'"),
        ("trigger", "SELECT DISTINCT tgname FROM pg_trigger WHERE NOT tgisinternal"),
    ],
)
def test_indexes_and_triggers_have_the_same_names(lite, raw, kind, query):
    sql = "SELECT name FROM sqlite_master WHERE type = ? AND sql IS NOT NULL"
    named = {row[0] for row in lite.execute(sql, (kind,))}
    made_for_keys = {
        name
        for (name,) in raw.execute("SELECT conname FROM pg_constraint WHERE contype IN ('p', 'u')")
    }
    assert {name for (name,) in raw.execute(query)} - made_for_keys == named


def test_the_same_changes_of_a_payment_are_legal(lite, raw):
    pairs = list(itertools.product(PaymentState, repeat=2))
    outcomes = [[may_become(db, *pair) for pair in pairs] for db in (lite, Session(raw))]
    assert outcomes[0] == outcomes[1]
    assert True in outcomes[0]
    assert False in outcomes[0]


_numbers = itertools.count(1)
_UNPAID = (PaymentState.RESERVED, PaymentState.SETTLING, PaymentState.RELEASED)
_INSERT = """INSERT INTO payments (flow, state, request_hash, price_units, payer, payer_proven,
    search_from_block, paid_tx, paid_log_index, paid_units, created_at, updated_at)
    VALUES ('direct', ?, 'x', 1, ?, 0, 0, ?, ?, ?, 1.0, 1.0) RETURNING id"""
_NOBODY = "0x" + "0" * 40


def may_become(db, old, new):
    """Whether a payment may change from one state to another, with all else valid."""
    db.execute("BEGIN")
    try:
        return change(db, insert_payment(db, old), new)
    finally:
        db.execute("ROLLBACK")


def insert_payment(db, state):
    return db.execute(_INSERT, (state.value, _NOBODY, *paid_columns(state))).fetchone()[0]


def paid_columns(state):
    return (None, None, None) if state in _UNPAID else (f"0x{next(_numbers)}", 0, 1)


def change(db, payment_id, new):
    try:
        db.execute(
            """UPDATE payments SET state = ?, paid_tx = ?, paid_log_index = ?, paid_units = ?
               WHERE id = ?""",
            (new.value, *paid_columns(new), payment_id),
        )
    except (sqlite3.IntegrityError, psycopg.IntegrityError):
        return False
    return True


def test_the_same_changes_of_a_task_are_legal(lite, raw):
    states = (PaymentState.SETTLED, PaymentState.RESERVED, PaymentState.REFUND_DUE)
    cases = list(itertools.product(states, TaskStatus, TaskStatus))
    outcomes = [[task_may_become(db, *case) for case in cases] for db in (lite, Session(raw))]
    assert outcomes[0] == outcomes[1]
    assert True in outcomes[0]
    assert False in outcomes[0]


def task_may_become(db, state, old, new):
    db.execute("BEGIN")
    try:
        payment_id = insert_payment(db, state)
        db.execute(
            """INSERT INTO tasks (id, payment_id, slug, capability, status, request, due_at,
                   created_at, result, code) VALUES ('t', ?, 's', 'c', ?, '{}', 1.0, 1.0, ?, ?)""",
            (payment_id, old.value, *ended_columns(old)),
        )
        sql = "UPDATE tasks SET status = ?, result = ?, code = ? WHERE id = 't'"
        db.execute(sql, (new.value, *ended_columns(new)))
    except (sqlite3.IntegrityError, psycopg.IntegrityError):
        return False
    finally:
        db.execute("ROLLBACK")
    return True


def ended_columns(status):
    is_failed = status in (TaskStatus.FAILED, TaskStatus.DROPPED)
    return ("{}" if status is TaskStatus.COMPLETED else None, "X" if is_failed else None)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM claims",
        "UPDATE claims SET payment_id = payment_id",
        "INSERT INTO claims (key, payment_id) VALUES ('tx:1', 1)",
        "INSERT INTO claims (key, payment_id) VALUES ('tx:2', 99)",
        "DELETE FROM operator_actions",
        "UPDATE operator_actions SET reason = 'x'",
        "DELETE FROM method_proofs",
        "UPDATE method_proofs SET proof = proof",
        "UPDATE method_proofs SET answer = NULL",
        "UPDATE payments SET method = 'other'",
        "UPDATE payments SET price_units = 0",
        "UPDATE payments SET paid_tx = '0x1'",
        """INSERT INTO payments (flow, state, request_hash, price_units, payer, payer_proven,
           search_from_block, created_at, updated_at, method)
           VALUES ('direct', 'reserved', 'x', 1, '0x1', 0, 0, 1.0, 1.0, 'voucher')""",
        "UPDATE payments SET state = 'settled', paid_tx = 'x', paid_log_index = 0, paid_units = 1",
    ],
)
def test_what_must_never_be_written_is_refused_by_both(lite, raw, statement):
    for db, refusal in ((lite, sqlite3.IntegrityError), (Session(raw), psycopg.IntegrityError)):
        if db is lite:
            db.execute("PRAGMA foreign_keys = ON")
        db.execute(
            """INSERT INTO payments (id, flow, state, request_hash, price_units, payer,
               payer_proven, search_from_block, created_at, updated_at, method)
               VALUES (1, 'direct', 'reserved', 'x', 1, ?, 0, 0, 1.0, 1.0, 'voucher')""",
            (_NOBODY,),
        )
        db.execute("INSERT INTO claims (key, payment_id) VALUES ('tx:1', 1)")
        db.execute(
            """INSERT INTO method_proofs (payment_id, claim, proof, value_units, payer)
               VALUES (1, 'voucher:1', ?, 1, 'p')""",
            (b"x",),
        )
        db.execute(
            """INSERT INTO operator_actions (at, door, actor, address, action, subject, reason)
               VALUES (1.0, 'cli', 'a', '', 'b', 'c', 'd')"""
        )
        with pytest.raises(refusal):
            db.execute(statement)
