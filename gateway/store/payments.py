"""The five payment writes, as functions of the write connection. Each is atomic.

In docs/payments.md, `reserve` is T1, `accept_direct` T1', `begin_settling` T2, `settle` T3 and
`release` TR. The database itself decides races between them.
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
from gateway.domain.eip3009 import transaction_key
from gateway.errors import InsufficientPayment, TxAlreadyUsed
from gateway.store.claims import (
    check_own,
    check_same_request,
    claim,
    direct_key_hash,
    find_direct,
    find_idempotent,
    insert_task,
    is_claimed,
    queue_task,
)
from gateway.store.locks import locked
from gateway.store.nonces import note_mined, write_down
from gateway.store.payers import check_limits, name_file_lock
from gateway.store.rows import dump
from gateway.store.sql import Connection

_OPEN = (PaymentState.RESERVED, PaymentState.SETTLING)


def _name_payer_locks(task: NewTask, authorization: Authorization, *_: object) -> list[str]:
    # The limits depend on sums over the payer's open payments.
    return [*name_file_lock(task), f"payer:{authorization.sender}"]


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

    Returns None, and writes nothing, if `key` is already claimed. If another authorization used the
    Idempotency-Key, writes nothing and returns the task of that authorization. Raises
    `IdempotencyConflict` if that task is for a different request, `PayerBusy` if the payer has too
    much open, and `ExecutionError` if files of held tasks reach their limit.
    """
    if is_claimed(db, key):
        return None
    if idempotency_hash is not None and (known := find_idempotent(db, idempotency_hash)):
        check_same_request(known, task.request_hash)
        return known
    if limits is not None:
        check_limits(db, task, authorization.sender, limits)
    payment = _insert_reserved(db, task, authorization, search_from_block, idempotency_hash)
    claim(db, key, payment.id)
    return insert_task(db, task, payment, TaskStatus.HELD)


def _insert_reserved(
    db: Connection,
    task: NewTask,
    authorization: Authorization,
    search_from_block: int,
    idempotency_hash: str | None,
) -> Payment:
    payment_id: int = db.execute(
        """INSERT INTO payments (flow, state, request_hash, idempotency_hash, price_units, payer,
               payer_proven, "authorization", search_from_block, created_at, updated_at)
           VALUES ('x402', 'reserved', ?, ?, ?, ?, 1, ?, ?, ?, ?) RETURNING id""",
        (
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
    return Payment(
        id=payment_id,
        flow=Flow.X402,
        state=PaymentState.RESERVED,
        request_hash=task.request_hash,
        price_units=task.price_units,
        payer=authorization.sender,
        authorization=authorization,
        search_from_block=search_from_block,
        paid_tx=None,
        paid_log_index=None,
        paid_units=None,
        slug=task.endpoint.slug,
        task_id=task.id,
    )


def accept_direct(
    db: Connection,
    task: NewTask,
    tx_hash: str,
    transfers: Sequence[Transfer],
    idempotency_key: str | None,
    *,
    is_proven: bool = False,
) -> Task:
    """Claim a transaction and one of its transfers. The payment is `settled`, the task `queued`.

    Returns the earlier task for a retry, as `find_direct` does. The Idempotency-Key is scoped to
    the sender of the transfer. `is_proven` means that this sender signed the request. Raises
    `TxAlreadyUsed`, `InsufficientPayment`, `IdempotencyConflict`.
    """
    if known := find_direct(db, tx_hash, idempotency_key, task.request_hash):
        return known
    transfer = _choose_transfer(db, transfers, task.price_units)
    key_hash = _check_key(db, transfer, idempotency_key, task.request_hash)
    payment = _insert_settled(db, task, transfer, key_hash, is_proven)
    claim(db, transaction_key(tx_hash), payment.id)
    if transfer.authorization_key is not None:
        claim(db, transfer.authorization_key, payment.id)
    return insert_task(db, task, payment, TaskStatus.QUEUED)


def _check_key(
    db: Connection, transfer: Transfer, idempotency_key: str | None, request_hash: str
) -> str | None:
    """Hash the sender's Idempotency-Key; raise if another request used it."""
    if idempotency_key is None:
        return None
    key_hash = direct_key_hash(transfer.sender, idempotency_key)
    if known := find_idempotent(db, key_hash):
        check_same_request(known, request_hash)
    return key_hash


def _insert_settled(
    db: Connection,
    task: NewTask,
    transfer: Transfer,
    idempotency_hash: str | None,
    is_proven: bool,  # noqa: FBT001 - a fact that is written down
) -> Payment:
    payment_id: int = db.execute(
        """INSERT INTO payments (flow, state, request_hash, idempotency_hash, price_units, payer,
               payer_proven, search_from_block, paid_tx, paid_log_index, paid_units, paid_block,
               created_at, updated_at)
           VALUES ('direct', 'settled', ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?) RETURNING id""",
        (
            task.request_hash,
            idempotency_hash,
            task.price_units,
            transfer.sender,
            int(is_proven),
            transfer.tx_hash,
            transfer.log_index,
            transfer.amount_units,
            _block_of(transfer),
            task.created_at,
            task.created_at,
        ),
    ).fetchone()[0]
    return _describe_settled(payment_id, task, transfer)


def _describe_settled(payment_id: int, task: NewTask, transfer: Transfer) -> Payment:
    return Payment(
        id=payment_id,
        flow=Flow.DIRECT,
        state=PaymentState.SETTLED,
        request_hash=task.request_hash,
        price_units=task.price_units,
        payer=transfer.sender,
        authorization=None,
        search_from_block=0,
        paid_tx=transfer.tx_hash,
        paid_log_index=transfer.log_index,
        paid_units=transfer.amount_units,
        slug=task.endpoint.slug,
        task_id=task.id,
    )


def _block_of(transfer: Transfer) -> int | None:
    return transfer.mined.block_number if transfer.mined is not None else None


def _choose_transfer(db: Connection, transfers: Sequence[Transfer], price_units: int) -> Transfer:
    """Return the first unused transfer that covers the price alone."""
    unused = [
        transfer
        for transfer in transfers
        if transfer.authorization_key is None or not is_claimed(db, transfer.authorization_key)
    ]
    if not unused:
        raise TxAlreadyUsed("The transfer in this transaction already paid for a generation.")
    enough = [transfer for transfer in unused if transfer.amount_units >= price_units]
    if not enough:
        most = max(transfer.amount_units for transfer in unused)
        raise InsufficientPayment(
            "The transfer is below the endpoint's price.",
            details=f"transferred {most} units, price {price_units} units of 10^-6 USDC",
        )
    return enough[0]


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
    ).rowcount
    if not changed:
        raise RuntimeError(f"payment {payment_id} is closed")
    return None if transaction is None else write_down(db, payment_id, transaction)


def settle(db: Connection, payment_id: int, transfer: Transfer, now: float) -> bool:
    """Record the transfer; the payment is `settled`, the task `queued`. Runs before the 200.

    Returns False if the payment is already closed. Raises `RuntimeError` if this payment did not
    claim the transfer's authorization.
    """
    changed = db.execute(
        """UPDATE payments SET state = ?, paid_tx = ?, paid_log_index = ?, paid_units = ?,
               paid_block = ?, updated_at = ? WHERE id = ? AND state IN (?, ?)""",
        (
            PaymentState.SETTLED,
            transfer.tx_hash,
            transfer.log_index,
            transfer.amount_units,
            _block_of(transfer),
            now,
            payment_id,
            *_OPEN,
        ),
    ).rowcount
    if changed:
        check_own(db, transfer, payment_id)
        if transfer.mined is not None:
            note_mined(db, transfer.mined)
        queue_task(db, payment_id, now)
    return bool(changed)


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
