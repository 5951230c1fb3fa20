"""Helpers shared by the payment writes: claims, Idempotency-Keys, and the task row."""

import hashlib

from gateway.contracts import NewTask
from gateway.domain import Payment, Task, TaskStatus, Transfer
from gateway.domain.eip3009 import transaction_key
from gateway.errors import IdempotencyConflict, TxAlreadyUsed
from gateway.store.rows import SELECT_TASK, dump_request, task_of
from gateway.store.sql import Connection, dialect_of


def is_claimed(db: Connection, key: str) -> bool:
    """Whether a payment has claimed a key."""
    return db.execute("SELECT 1 FROM claims WHERE key = ?", (key,)).fetchone() is not None


def claim(db: Connection, key: str, payment_id: int) -> None:
    """Claim a key. If it is taken, the primary key fails the whole write."""
    db.execute("INSERT INTO claims (key, payment_id) VALUES (?, ?)", (key, payment_id))


def check_own(db: Connection, transfer: Transfer, payment_id: int) -> None:
    """Raise `RuntimeError` if this payment did not claim the transfer's authorization."""
    own = db.execute(
        "SELECT 1 FROM claims WHERE key = ? AND payment_id = ?",
        (transfer.authorization_key, payment_id),
    ).fetchone()
    if own is None:
        raise RuntimeError(f"transfer {transfer.tx_hash} is not of payment {payment_id}")


def find_idempotent(db: Connection, idempotency_hash: str) -> Task | None:
    """Return the task that was accepted under an Idempotency-Key."""
    row = db.execute(f"{SELECT_TASK} WHERE p.idempotency_hash = ?", (idempotency_hash,)).fetchone()
    return task_of(row) if row else None


def find_direct(
    db: Connection, tx_hash: str, idempotency_key: str | None, request_hash: str
) -> Task | None:
    """Return the task that a transaction paid for, or None if the transaction is unused.

    Raises `TxAlreadyUsed` unless the request has the Idempotency-Key of the purchase, and
    `IdempotencyConflict` if it has that key but differs from the first request.
    """
    row = db.execute(
        f"{SELECT_TASK} JOIN claims c ON c.payment_id = p.id WHERE c.key = ?",
        (transaction_key(tx_hash),),
    ).fetchone()
    if row is None:
        return None
    known = task_of(row)
    if idempotency_key is None or not _has_key(db, known.payment, idempotency_key):
        raise TxAlreadyUsed("This transaction already paid for a generation.")
    check_same_request(known, request_hash)
    return known


def _has_key(db: Connection, payment: Payment, idempotency_key: str) -> bool:
    # Payments from before release 0.1.0 store a hash of the key alone. Their buyers may still retry
    # after the upgrade.
    hashes = (
        direct_key_hash(payment.payer, idempotency_key),
        hashlib.sha256(idempotency_key.encode()).hexdigest(),
    )
    own = db.execute(
        "SELECT 1 FROM payments WHERE id = ? AND idempotency_hash IN (?, ?)", (payment.id, *hashes)
    ).fetchone()
    return own is not None


def direct_key_hash(payer: str, idempotency_key: str) -> str:
    """Return the stored hash of a direct payment's Idempotency-Key, which is scoped to the sender.

    The separator 0xFE never occurs in UTF-8. Other flows use 0xFF, so the hashes cannot collide.
    """
    return hashlib.sha256(payer.lower().encode() + b"\xfe" + idempotency_key.encode()).hexdigest()


def check_same_request(known: Task, request_hash: str) -> None:
    """Raise `IdempotencyConflict` if an Idempotency-Key is reused for a different request."""
    if known.payment.request_hash != request_hash:
        raise IdempotencyConflict("This Idempotency-Key was used with another request.")


def insert_task(db: Connection, task: NewTask, payment: Payment, status: TaskStatus) -> Task:
    """Insert the task of a payment and its request file, and return the task."""
    due_at = dialect_of(db).not_in_future("?")
    db.execute(
        f"""INSERT INTO tasks (id, payment_id, slug, capability, status, request, callback_url,
               due_at, created_at, request_id)
           VALUES (?, ?, ?, ?, ?, ?, ?, {due_at}, ?, ?)""",  # noqa: S608 - a constant
        (
            task.id,
            payment.id,
            task.endpoint.slug,
            task.endpoint.capability,
            status.value,
            dump_request(task.request),
            task.request.callback_url,
            task.created_at,
            task.created_at,
            task.request_id or None,
        ),
    )
    if task.request.attachment is not None:
        db.execute(
            "INSERT INTO task_files (task_id, data) VALUES (?, ?)",
            (task.id, task.request.attachment.data),
        )
    return _read_back(task, payment, status)


def queue_task(db: Connection, payment_id: int, now: float) -> None:
    """Queue the task of a payment that has settled."""
    due_at = dialect_of(db).not_in_future("?")
    db.execute(
        f"UPDATE tasks SET status = ?, due_at = {due_at} WHERE payment_id = ?",  # noqa: S608
        (TaskStatus.QUEUED, now, payment_id),
    )


def _read_back(task: NewTask, payment: Payment, status: TaskStatus) -> Task:
    return Task(
        id=task.id,
        slug=task.endpoint.slug,
        capability=task.endpoint.capability,
        status=status,
        attempt=0,
        progress=None,
        created_at=task.created_at,
        started_at=None,
        completed_at=None,
        expires_at=None,
        result=None,
        outputs_gone=False,
        code=None,
        error=None,
        details=None,
        payment=payment,
        refund=None,
    )
