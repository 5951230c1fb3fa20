"""Rows of the database as tasks: parsed by hand, written by `dump`, checked against cattrs."""

import contextlib
import json
import sqlite3

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.contracts import NewTask
from gateway.domain import (
    WAITS_FOR_MEMORY,
    Attachment,
    Authorization,
    Decision,
    Flow,
    GenerationRequest,
    Payment,
    PaymentState,
    Refund,
    StoredOutput,
    StoredResult,
    Task,
    TaskStatus,
    Transfer,
)
from gateway.store import direct_payments, leases, payments, refunds, rows, tasks
from gateway.store.sqlite.migrations import migrate
from gateway_testing.facts import ENDPOINT, NOW, WALLET

# Text that a row can hold: no lone surrogates, and no NUL, at which SQLite's own functions stop.
_TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=0, max_size=20
)
_HASHES = st.binary(min_size=32, max_size=32).map(lambda data: "0x" + data.hex())
_ADDRESSES = st.binary(min_size=20, max_size=20).map(lambda data: "0x" + data.hex())
_TIMES = st.floats(1.0, 4e9) | st.integers(1, 4_000_000_000)
_REQUESTS = st.builds(
    GenerationRequest,
    prompt=_TEXT,
    aspect_ratio=st.none() | _TEXT,
    output_format=st.none() | _TEXT,
    resolution=st.none() | _TEXT,
    pages=st.none() | st.integers(0, 10_000),
    attachment=st.none() | st.builds(Attachment, name=_TEXT, data=st.binary(max_size=9)),
)
_NEW = st.builds(
    NewTask,
    id=st.uuids().map(str),
    endpoint=st.builds(
        attrs.evolve, st.just(ENDPOINT), slug=st.text("abc-", min_size=1), capability=_TEXT
    ),
    request=_REQUESTS,
    request_hash=_TEXT,
    price_units=st.integers(1, 10**12),
    created_at=_TIMES,
)
_AUTHORIZATIONS = st.builds(
    Authorization,
    sender=_ADDRESSES,
    recipient=st.just(WALLET),
    value_units=st.integers(0, 2**256 - 1),
    valid_after=st.integers(0, 2**256 - 1),
    valid_before=st.integers(0, 2**256 - 1),
    nonce=_HASHES,
    signature=st.binary(max_size=70),
)
_SIZES = st.none() | st.integers(0, 2**40) | st.floats(0, 1e6)
_RESULTS = st.builds(
    StoredResult,
    outputs=st.lists(
        st.builds(
            StoredOutput,
            key=_TEXT,
            media_type=_TEXT,
            size_bytes=st.integers(0, 2**40),
            sha256=_TEXT,
            width=_SIZES,
            height=_SIZES,
        ),
        max_size=3,
    ).map(tuple),
    text=st.none() | _TEXT,
)
_LIFE = st.sampled_from(["accepted", "leased", "completed", "failed", "rejected", "refunded"])

# No deadline: other programs use this machine, too.
_MANY = settings(deadline=None, max_examples=60)


@pytest.fixture(scope="module")
def db():
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        opened.row_factory = sqlite3.Row
        migrate(opened)
        opened.execute("PRAGMA foreign_keys = ON")
        yield opened


@contextlib.contextmanager
def _forgotten(db):
    """Undo everything written inside the block."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


def _find(db, task_id) -> sqlite3.Row:
    return db.execute(f"{rows.SELECT_TASK} WHERE t.id = ?", (task_id,)).fetchone()


def _structured(db, task_id) -> Task:
    """Return a task as cattrs reads it, with every column found by name."""
    task = db.execute("SELECT * FROM tasks WHERE id = ?", (task_id,)).fetchone()
    paid = db.execute("SELECT * FROM payments WHERE id = ?", (task["payment_id"],)).fetchone()
    refund = db.execute(
        "SELECT * FROM refunds WHERE payment_id = ?", (task["payment_id"],)
    ).fetchone()
    signed, result = paid["authorization"], task["result"]
    payment = Payment(
        **_named(paid, Payment, "flow", "state", "authorization", "slug", "task_id"),
        slug=task["slug"],
        task_id=task["id"],
        flow=Flow(paid["flow"]),
        state=PaymentState(paid["state"]),
        authorization=rows.load(signed, Authorization) if signed is not None else None,
    )
    return Task(
        **_named(
            task, Task, "status", "result", "outputs_gone", "payment", "refund", "waits_for_memory"
        ),
        waits_for_memory=task["status"] == "processing" and task["note"] == WAITS_FOR_MEMORY,
        status=TaskStatus(task["status"]),
        result=rows.load(result, StoredResult) if result is not None else None,
        outputs_gone=bool(task["outputs_gone"]),
        payment=payment,
        refund=Refund(**_named(refund, Refund, "state"), state=payment.state) if refund else None,
    )


def _named(row, kind, *others) -> dict:
    names = [field.name for field in attrs.fields(kind)]
    return {name: row[name] for name in names if name not in others}


def _accept(db, new, transfer) -> Task:
    """Accept by a transfer of the full price."""
    return direct_payments.accept_direct(
        db, new, transfer.tx_hash, [transfer], None, is_proven=False
    )


@st.composite
def transfers(draw, price_units):
    return Transfer(
        tx_hash=draw(_HASHES),
        log_index=draw(st.integers(0, 10**6)),
        sender=draw(_ADDRESSES),
        amount_units=price_units + draw(st.integers(0, 10**9)),
        authorization_key=draw(st.none() | _TEXT.map("auth:".__add__)),
    )


def _live(db, task, life, result) -> None:
    """Advance a queued task to the state in `life`."""
    if life == "accepted":
        return
    (lease,) = leases.lease_due(db, 1, 60.0, 5e9, [])
    if life == "completed":
        tasks.complete(db, lease, result, NOW, NOW + 9, None, None)
    elif life in ("failed", "rejected", "refunded"):
        tasks.fail(db, lease, "provider_error", "It failed.", NOW, None, None)
    if life == "rejected":
        refunds.decide(db, task.id, Decision.REJECTED, None, "abuse", NOW)
    elif life == "refunded":
        refunds.begin(db, task.payment.id, None, "0xkey", task.payment.payer, 5, 10**20, NOW)
        refunds.end(db, task.payment.id, "0x" + "e" * 64, NOW)


@_MANY
@given(data=st.data(), new=_NEW, life=_LIFE, result=_RESULTS)
def test_a_task_is_read_as_cattrs_reads_it(db, data, new, life, result):
    with _forgotten(db):
        task = _accept(db, new, data.draw(transfers(new.price_units)))
        _live(db, task, life, result)
        assert rows.task_of(_find(db, new.id)) == _structured(db, new.id)
        db.execute("UPDATE tasks SET outputs_gone = 1")
        assert rows.task_of(_find(db, new.id)) == _structured(db, new.id)


@_MANY
@given(new=_NEW, signed=_AUTHORIZATIONS, state=st.sampled_from(["reserved", "settled", "released"]))
def test_a_reserved_task_is_read_as_cattrs_reads_it(db, new, signed, state):
    with _forgotten(db):
        task = payments.reserve(db, new, signed, "auth:key", 7, None, None)
        paid = Transfer(
            tx_hash="0x1",
            log_index=3,
            sender=signed.sender,
            amount_units=new.price_units,
            authorization_key="auth:key",
        )
        if state == "settled":
            assert payments.settle(db, task.payment.id, paid, NOW)
        elif state == "released":
            assert payments.release(db, task.payment.id, NOW)
        found = _find(db, new.id)
        assert rows.task_of(found) == _structured(db, new.id)
        own = db.execute(f"SELECT {rows.PAYMENT_COLUMNS} FROM payments p").fetchone()
        assert rows.payment_of(own) == rows.task_of(found).payment


@_MANY
@given(data=st.data(), new=_NEW, signed=_AUTHORIZATIONS, key=st.none() | _TEXT)
def test_what_a_sale_answers_is_what_the_store_reads_afterwards(db, data, new, signed, key):
    with _forgotten(db):
        reserved = payments.reserve(db, new, signed, "auth:key", 7, key, None)
        assert rows.task_of(_find(db, new.id)) == reserved
    with _forgotten(db):
        accepted = _accept(db, new, data.draw(transfers(new.price_units)))
        assert rows.task_of(_find(db, new.id)) == accepted


@_MANY
@given(request=_REQUESTS)
def test_a_request_is_read_as_it_was_written(request):
    data = request.attachment.data if request.attachment is not None else None
    assert rows.request_of(rows.dump_request(request), data) == request
    assert "attachment" not in json.loads(rows.dump_request(request))


@pytest.mark.parametrize(
    "text",
    [
        '{"outputs": []}',
        '{"text": "a", "later": [1]}',
        "{}",
        # Python's own JSON accepts more than the standard.
        '{"text": "\\ud800"}',
        '{"text": "a", "later": NaN}',
    ],
)
def test_a_result_of_another_version_is_read_as_cattrs_reads_it(text):
    assert rows._read_result(text) == rows.load(text, StoredResult)


def test_a_request_of_a_later_release_is_read_without_its_new_fields():
    request = GenerationRequest(prompt="a boat", resolution="2K")
    later = json.dumps(json.loads(rows.dump_request(request)) | {"later": [1]})
    assert rows.request_of(later, None) == request
