"""The money transactions T1, T2, T3 and TR: plain functions of the write connection.

Each is all or nothing and decides races by the database itself. docs/payments.md explains them.
"""

import sqlite3

from gateway.contracts import NewTask, SignedTransaction
from gateway.contracts.payers import ReserveLimits
from gateway.domain import Authorization, Flow, PaymentState, Task, TaskStatus, Transfer
from gateway.store.claims import (
    check_own,
    claim,
    find_idempotent,
    find_task,
    insert_task,
    is_claimed,
    same_request,
)
from gateway.store.payers import check_limits
from gateway.store.rows import dump

_OPEN = (PaymentState.RESERVED, PaymentState.SETTLING)


def reserve(
    db: sqlite3.Connection,
    task: NewTask,
    authorization: Authorization,
    key: str,
    search_from_block: int,
    idempotency_hash: str | None,
    limits: ReserveLimits | None,
) -> Task | None:
    """T1: payment `reserved`, its claim and the task `held`, before anything is signed or sent."""
    if is_claimed(db, key):
        return None
    if idempotency_hash is not None and (known := find_idempotent(db, idempotency_hash)):
        return same_request(known, task)
    if limits is not None:
        check_limits(db, task, authorization.sender, limits)
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
    claim(db, key, payment_id)
    insert_task(db, task, payment_id, TaskStatus.HELD)
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
    """Write down a signed transaction; a dearer one of the same nonce stands beside the first.

    Another process of ours may have written down the very same bytes.
    """
    db.execute(
        """INSERT INTO sent_transactions (tx_hash, payment_id, signer, nonce, raw,
               max_fee_wei, max_priority_wei, sent_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (tx_hash) DO NOTHING""",
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
    """T3: the transfer that paid, payment settled, task queued, before the 200 is sent.

    Raises `RuntimeError` for a transfer whose authorization this payment did not claim.
    """
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
        check_own(db, transfer, payment_id)
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
