"""The money transactions T1, T1', T2, T3 and TR: plain functions of the write connection.

Each is all or nothing and decides races by the database itself. docs/payments.md explains them.
"""

import sqlite3
from collections.abc import Sequence

from gateway.contracts import NewTask, SignedTransaction
from gateway.domain import Authorization, Flow, PaymentState, Task, TaskStatus, Transfer
from gateway.errors import IdempotencyConflict, InsufficientPayment, TxAlreadyUsed
from gateway.store.rows import SELECT_TASK, dump, dump_request, task_of
from gateway.usdc import transaction_key

_OPEN = (PaymentState.RESERVED, PaymentState.SETTLING)


def find_task(db: sqlite3.Connection, task_id: str) -> Task:
    """Return a task that is known to exist."""
    return task_of(db.execute(f"{SELECT_TASK} WHERE t.id = ?", (task_id,)).fetchone())


def reserve(
    db: sqlite3.Connection,
    task: NewTask,
    authorization: Authorization,
    key: str,
    search_from_block: int,
    idempotency_hash: str | None,
) -> Task | None:
    """T1: payment `reserved`, its claim and the task `held`, before anything is signed or sent."""
    if _is_claimed(db, key):
        return None
    if idempotency_hash is not None and (known := find_idempotent(db, idempotency_hash)):
        return _same_request(known, task)
    payment_id = db.execute(
        """INSERT INTO payments (flow, state, request_hash, idempotency_hash, price_units, payer,
               payer_proven, authorization, search_from_block, created_at, updated_at)
           VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?) RETURNING id""",
        (
            Flow.X402,
            PaymentState.RESERVED,
            task.request_hash,
            idempotency_hash,
            task.price_units,
            authorization.sender,
            dump(authorization),
            search_from_block,
            task.created_at,
            task.created_at,
        ),
    ).fetchone()[0]
    _claim(db, key, payment_id)
    _insert_task(db, task, payment_id, TaskStatus.HELD)
    return find_task(db, task.id)


def begin_settling(
    db: sqlite3.Connection, payment_id: int, transaction: SignedTransaction | None, now: float
) -> None:
    """T2: what is about to be broadcast, its nonce used up, before it is broadcast."""
    changed = db.execute(
        "UPDATE payments SET state = ?, updated_at = ? WHERE id = ? AND state IN (?, ?)",
        (PaymentState.SETTLING, now, payment_id, *_OPEN),
    ).rowcount
    if not changed:
        raise RuntimeError(f"payment {payment_id} is closed")
    if transaction is not None:
        use_nonce(db, transaction)
        insert_transaction(db, payment_id, transaction)


def use_nonce(db: sqlite3.Connection, transaction: SignedTransaction) -> None:
    """Use up a signer's nonce; `RuntimeError` where another transaction took it meanwhile."""
    taken = db.execute(
        "SELECT 1 FROM sent_transactions WHERE signer = ? AND nonce = ?",
        (transaction.signer, transaction.nonce),
    ).fetchone()
    if taken:
        raise RuntimeError(f"nonce {transaction.nonce} of {transaction.signer} is taken")


def insert_transaction(
    db: sqlite3.Connection, payment_id: int, transaction: SignedTransaction
) -> None:
    """Write down a signed transaction; a dearer one of the same nonce stands beside the first."""
    db.execute(
        """INSERT INTO sent_transactions (tx_hash, payment_id, signer, nonce, raw,
               max_fee_wei, max_priority_wei, sent_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            transaction.tx_hash,
            payment_id,
            transaction.signer,
            transaction.nonce,
            transaction.raw,
            transaction.max_fee_wei,
            transaction.max_priority_wei,
            transaction.sent_at,
        ),
    )


def settle(db: sqlite3.Connection, payment_id: int, transfer: Transfer, now: float) -> bool:
    """T3: the transfer that paid, payment settled, task queued, before the 200 is sent."""
    changed = db.execute(
        """UPDATE payments SET state = ?, paid_tx = ?, paid_log_index = ?, paid_units = ?,
               updated_at = ? WHERE id = ? AND state IN (?, ?)""",
        (
            PaymentState.SETTLED,
            transfer.tx_hash,
            transfer.log_index,
            transfer.amount_units,
            now,
            payment_id,
            *_OPEN,
        ),
    ).rowcount
    if changed:
        db.execute(
            "UPDATE tasks SET status = ?, due_at = ? WHERE payment_id = ?",
            (TaskStatus.QUEUED, now, payment_id),
        )
    return bool(changed)


def release(db: sqlite3.Connection, payment_id: int, now: float) -> bool:
    """TR: proven that no transfer happened or can happen; the task is dropped with it.

    Its Idempotency-Key is free again: nothing was taken under it.
    """
    changed = db.execute(
        """UPDATE payments SET state = ?, idempotency_hash = NULL, updated_at = ?
           WHERE id = ? AND state IN (?, ?)""",
        (PaymentState.RELEASED, now, payment_id, *_OPEN),
    ).rowcount
    if changed:
        task_id = db.execute(
            """UPDATE tasks SET status = ?, code = 'PAYMENT_NOT_SETTLED', completed_at = ?,
                   error = 'The payment did not happen; nothing was taken.'
               WHERE payment_id = ? RETURNING id""",
            (TaskStatus.DROPPED, now, payment_id),
        ).fetchone()[0]
        db.execute("DELETE FROM task_files WHERE task_id = ?", (task_id,))
    return bool(changed)


def accept_direct(
    db: sqlite3.Connection,
    task: NewTask,
    tx_hash: str,
    transfers: Sequence[Transfer],
    idempotency_hash: str | None,
    is_proven: bool,  # noqa: FBT001 - a fact that is written down
) -> Task:
    """T1': claim the transaction and the transfer used, payment settled, task queued; in one."""
    if idempotency_hash is not None and (known := find_idempotent(db, idempotency_hash)):
        return _same_request(known, task)
    if _is_claimed(db, transaction_key(tx_hash)):
        raise TxAlreadyUsed("This transaction already paid for a generation.")
    transfer = _choose(db, transfers, task.price_units)
    payment_id = db.execute(
        """INSERT INTO payments (flow, state, request_hash, idempotency_hash, price_units, payer,
               payer_proven, search_from_block, paid_tx, paid_log_index, paid_units, created_at,
               updated_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?) RETURNING id""",
        (
            Flow.DIRECT,
            PaymentState.SETTLED,
            task.request_hash,
            idempotency_hash,
            task.price_units,
            transfer.sender,
            is_proven,
            transfer.tx_hash,
            transfer.log_index,
            transfer.amount_units,
            task.created_at,
            task.created_at,
        ),
    ).fetchone()[0]
    _claim(db, transaction_key(tx_hash), payment_id)
    if transfer.authorization_key is not None:
        _claim(db, transfer.authorization_key, payment_id)
    _insert_task(db, task, payment_id, TaskStatus.QUEUED)
    return find_task(db, task.id)


def find_idempotent(db: sqlite3.Connection, idempotency_hash: str) -> Task | None:
    """Return the task accepted under an Idempotency-Key."""
    row = db.execute(f"{SELECT_TASK} WHERE p.idempotency_hash = ?", (idempotency_hash,)).fetchone()
    return task_of(row) if row else None


def _same_request(known: Task, task: NewTask) -> Task:
    if known.payment.request_hash != task.request_hash:
        raise IdempotencyConflict("This Idempotency-Key was used with another request.")
    return known


def _choose(db: sqlite3.Connection, transfers: Sequence[Transfer], price_units: int) -> Transfer:
    """Return the first transfer that nobody used and that alone reaches the price."""
    free = [
        transfer
        for transfer in transfers
        if transfer.authorization_key is None or not _is_claimed(db, transfer.authorization_key)
    ]
    if not free:
        raise TxAlreadyUsed("The transfer in this transaction already paid for a generation.")
    enough = [transfer for transfer in free if transfer.amount_units >= price_units]
    if not enough:
        most = max(transfer.amount_units for transfer in free)
        raise InsufficientPayment(
            "The transfer is below the endpoint's price.",
            details=f"transferred {most} units, price {price_units} units of 10^-6 USDC",
        )
    return enough[0]


def _is_claimed(db: sqlite3.Connection, key: str) -> bool:
    return db.execute("SELECT 1 FROM claims WHERE key = ?", (key,)).fetchone() is not None


def _claim(db: sqlite3.Connection, key: str, payment_id: int) -> None:
    """Claim a key; the primary key fails the whole transaction where it is taken."""
    db.execute("INSERT INTO claims (key, payment_id) VALUES (?, ?)", (key, payment_id))


def _insert_task(
    db: sqlite3.Connection, task: NewTask, payment_id: int, status: TaskStatus
) -> None:
    db.execute(
        """INSERT INTO tasks (id, payment_id, slug, capability, status, request, due_at, created_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            task.id,
            payment_id,
            task.endpoint.slug,
            task.endpoint.capability,
            status,
            dump_request(task.request),
            task.created_at,
            task.created_at,
        ),
    )
    if task.request.attachment is not None:
        db.execute(
            "INSERT INTO task_files (task_id, data) VALUES (?, ?)",
            (task.id, task.request.attachment.data),
        )
