"""Four payment writes, as functions of the write connection, and their helpers.

In docs/payments.md, `reserve` is T1, `begin_settling` T2, `settle` T3 and `release` TR; T1' is
`accept_direct` in `direct_payments`. The database itself decides races between them.
"""

from collections.abc import Sequence

from gateway.contracts import NewTask, SignedTransaction, UnsignedTransaction
from gateway.contracts.store import ReserveLimits
from gateway.domain import (
    Authorization,
    Flow,
    Payment,
    PaymentState,
    Task,
    TaskStatus,
    Transfer,
)
from gateway.errors import IdempotencyConflict
from gateway.store.nonces import note_mined, write_down
from gateway.store.payers import check_limits, find_standing, name_file_lock
from gateway.store.rows import SELECT_TASK, dump, dump_request, new_payment_of, task_of
from gateway.store.sql import Connection, Cursor, Row, dialect_of, finish, locked, placeholders

# The slug of tasks for transfers that bought nothing. No endpoint can have it.
UNUSED = "(unused transfer)"


def is_claimed(db: Connection, key: str) -> bool:
    """Whether a payment has claimed a key."""
    return db.execute("SELECT 1 FROM claims WHERE key = ?", (key,)).fetchone() is not None


def find_claims(db: Connection, keys: Sequence[str]) -> Cursor:
    """Find those of some keys that are claimed."""
    return db.execute(f"SELECT key FROM claims WHERE key IN ({placeholders(keys)})", keys)  # noqa: S608


def claim(db: Connection, key: str, payment_id: int) -> None:
    """Claim a key. If it is taken, the primary key fails the whole write."""
    db.execute("INSERT INTO claims (key, payment_id) VALUES (?, ?)", (key, payment_id))


def find_idempotent(db: Connection, *idempotency_hashes: str) -> Cursor:
    """Find the tasks (rows of `SELECT_TASK`) that were accepted under an Idempotency-Key."""
    return db.execute(
        f"{SELECT_TASK} WHERE p.idempotency_hash IN ({placeholders(idempotency_hashes)})",
        idempotency_hashes,
    )


def find_own(db: Connection, new: NewTask) -> Task | None:
    """Return a new task if it is recorded already, by a COMMIT whose response was lost."""
    own = db.execute(f"{SELECT_TASK} WHERE t.id = ?", (new.id,)).fetchone()
    return None if own is None else task_of(own)


def known_purchase(row: Row, new: NewTask) -> Task:
    """Return the task of an Idempotency-Key; raises `IdempotencyConflict` as below."""
    known = task_of(row)
    check_same_request(known, new.request_hash, new.sent_hash)
    return known


def check_same_request(known: Task, request_hash: str, sent_hash: str | None) -> None:
    """Raise `IdempotencyConflict` if an Idempotency-Key is reused for a different request."""
    is_same_sent = sent_hash is not None and known.payment.sent_hash == sent_hash
    if known.payment.request_hash != request_hash and not is_same_sent:
        raise IdempotencyConflict("This Idempotency-Key was used with another request.")


def block_of(transfer: Transfer) -> int | None:
    """Return the number of the transfer's block, if known."""
    return transfer.mined.block_number if transfer.mined is not None else None


def insert_task(db: Connection, task: NewTask, payment: Payment, status: TaskStatus) -> Task:
    """Insert the task of a payment and its request file, and return the task."""
    due_at = dialect_of(db).not_in_future("?")
    db.execute(
        f"""INSERT INTO tasks (id, payment_id, slug, sold_as, made_by, made_model, capability,
               status, request, callback_url, due_at, created_at, request_id)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {due_at}, ?, ?)""",  # noqa: S608 - a constant
        (
            task.id,
            payment.id,
            *_name_maker(task),
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
    return Task(
        id=task.id,
        slug=task.endpoint.slug,
        capability=task.endpoint.capability,
        status=status,
        created_at=task.created_at,
        payment=payment,
        made_by=task.maker.slug if task.maker is not None else None,
        made_model=_name_maker(task)[-1],
    )


def _name_maker(task: NewTask) -> tuple[str, str | None, str | None, str | None]:
    """Return slug, sold_as, made_by and made_model. Every release leases a task by its slug."""
    sold_as, maker = task.endpoint.slug, task.maker
    if maker is None:
        return sold_as, None, None, task.endpoint.model if task.names_model else None
    return maker.slug, sold_as, maker.slug, maker.model


def queue_task(db: Connection, payment_id: int, now: float) -> None:
    """Queue the held task of a payment, if that has settled."""
    due_at = dialect_of(db).not_in_future("?")
    db.execute(
        f"""UPDATE tasks SET status = ?, due_at = {due_at}
            WHERE payment_id = ? AND status = ?
            AND (SELECT state FROM payments WHERE id = tasks.payment_id) = ?""",  # noqa: S608
        (TaskStatus.QUEUED, now, payment_id, TaskStatus.HELD, PaymentState.SETTLED),
    )


def find_new_id(db: Connection) -> Cursor:
    """Find the id for a new payment. Execute it with the statements whose results decide."""
    return db.execute(dialect_of(db).new_payment_query)


def insert_payment(db: Connection, task: NewTask, new_id: Cursor, **columns: object) -> Payment:
    """Insert the payment of a new task, with `find_new_id`'s id and these further columns."""
    columns |= {
        "id": new_id.fetchone()[0],
        "request_hash": task.request_hash,
        "sent_hash": task.sent_hash,
        "price_units": task.price_units,
        "created_at": task.created_at,
        "updated_at": task.created_at,
    }
    names = ", ".join(f'"{name}"' for name in columns)
    values = tuple(columns.values())
    db.execute(f"INSERT INTO payments ({names}) VALUES ({placeholders(values)})", values)  # noqa: S608 - names of columns
    return new_payment_of(columns, task.endpoint.slug, task.id)


_OPEN = (PaymentState.RESERVED, PaymentState.SETTLING)


def _name_payer_locks(task: NewTask, authorization: Authorization, *rest: object) -> list[str]:
    # The limits depend on sums over the payer's open payments, and over deployments.
    limits = rest[-1] if rest else None
    deploys = isinstance(limits, ReserveLimits) and limits.deployments is not None
    deploying = ["deployments"] if deploys else []
    return [*deploying, *name_file_lock(task), f"payer:{authorization.sender}"]


@locked(_name_payer_locks)
def reserve(
    db: Connection,
    task: NewTask,
    authorization: Authorization,
    key: str,
    search_from_block: int,
    idempotency_hash: str | None = None,
    limits: ReserveLimits | None = None,
) -> Task | None:
    """Store a `reserved` payment, its claim and its `held` task, before anything is sent.

    Writes nothing if `key` is claimed: returns None, or this task if its COMMIT was not seen; or if
    the Idempotency-Key is used: returns its task. Raises as `known_purchase` and `check_limits` do.
    """
    # All are sent before a result is read: that is one round trip.
    claimed = find_claims(db, [key])
    earlier = find_idempotent(db, idempotency_hash) if idempotency_hash is not None else None
    standing = find_standing(db, task, authorization.sender, limits) if limits else None
    new_id = find_new_id(db)
    if claimed.fetchone() is not None:
        return find_own(db, task)
    if earlier is not None and (row := earlier.fetchone()):
        return known_purchase(row, task)
    if limits is not None and standing is not None:
        check_limits(db, task, standing, limits)
    payment = insert_payment(
        db,
        task,
        new_id,
        flow=Flow.X402,
        state=PaymentState.RESERVED,
        idempotency_hash=idempotency_hash,
        payer=authorization.sender,
        payer_proven=1,
        authorization=dump(authorization),
        search_from_block=search_from_block,
        deploys=int(limits is not None and limits.deployments is not None),
    )
    claim(db, key, payment.id)
    return insert_task(db, task, payment, TaskStatus.HELD)


def _name_signer_lock(
    _: int, transaction: SignedTransaction | UnsignedTransaction | None, *__: object
) -> list[str]:
    # The free nonce and the number of pending transactions must not change under us.
    return [f"signer:{transaction.signer}"] if transaction is not None else []


@locked(_name_signer_lock)
def begin_settling(
    db: Connection,
    payment_id: int,
    transaction: SignedTransaction | UnsignedTransaction | None,
    now: float,
) -> SignedTransaction | None:
    """Mark a payment `settling` and record its signed transaction. Broadcast only the result.

    Pass no transaction if a facilitator sends it. Raises `RuntimeError` if the payment is closed,
    or has used another nonce.
    """
    changed = db.execute(
        "UPDATE payments SET state = ?, updated_at = ? WHERE id = ? AND state IN (?, ?)",
        (PaymentState.SETTLING, now, payment_id, *_OPEN),
    )
    if not changed.rowcount:
        raise RuntimeError(f"payment {payment_id} is closed")
    return None if transaction is None else write_down(db, payment_id, transaction)


def settle(db: Connection, payment_id: int, transfer: Transfer, now: float) -> bool:
    """Record the transfer; the payment is `settled`, the task `queued`. Runs before the 200.

    Returns False if the payment is already closed otherwise. Raises `RuntimeError` if this payment
    did not claim the transfer's authorization. The transaction's receipt is recorded in any case.
    """
    found = db.execute(
        """SELECT p.state, p.paid_tx, p.paid_log_index, c.key FROM payments p
           LEFT JOIN claims c ON c.payment_id = p.id AND c.key = ? WHERE p.id = ?""",
        (transfer.authorization_key, payment_id),
    )
    changed = db.execute(
        """UPDATE payments SET state = ?, paid_tx = ?, paid_log_index = ?, paid_units = ?,
               paid_block = ?, updated_at = ? WHERE id = ? AND state IN (?, ?)
               AND EXISTS (SELECT 1 FROM claims WHERE key = ? AND payment_id = ?)""",
        (
            PaymentState.SETTLED,
            transfer.tx_hash,
            transfer.log_index,
            transfer.amount_units,
            block_of(transfer),
            now,
            payment_id,
            *_OPEN,
            transfer.authorization_key,
            payment_id,
        ),
    )
    if transfer.mined is not None:
        note_mined(db, transfer.mined)
    queue_task(db, payment_id, now)
    finish(db)
    row = found.fetchone()
    if not changed.rowcount and row is not None and row["key"] is None and row["state"] in _OPEN:
        raise RuntimeError(f"transfer {transfer.tx_hash} is not of payment {payment_id}")
    return bool(changed.rowcount) or (row is not None and _is_paid_by(row, transfer))


def _is_paid_by(row: Row, transfer: Transfer) -> bool:
    return (row["paid_tx"], row["paid_log_index"]) == (transfer.tx_hash, transfer.log_index)


def release(db: Connection, payment_id: int, now: float) -> bool:
    """Mark a payment `released` and its task `dropped`. False if it is already closed.

    Call this only once it is proven that no transfer happened or can happen. The Idempotency-Key
    becomes free again, because no money was taken.
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
