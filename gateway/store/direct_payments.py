"""The direct flow's write (T1'), and the lookup of what a transaction paid for."""

import hashlib
from collections.abc import Sequence

import attrs

from gateway.contracts import NewTask
from gateway.domain import Flow, Payment, PaymentState, Task, TaskStatus, Transfer
from gateway.domain.eip3009 import transaction_key
from gateway.errors import InsufficientPayment, InvalidPayment, TxAlreadyUsed
from gateway.store.payments import (
    UNUSED,
    block_of,
    check_same_request,
    claim,
    find_idempotent,
    insert_payment,
    insert_task,
    is_claimed,
)
from gateway.store.reserved_amounts import is_of_another, is_of_key
from gateway.store.rows import SELECT_TASK, task_of
from gateway.store.sql import Connection


def find_direct(
    db: Connection,
    tx_hash: str,
    idempotency_key: str | None,
    request_hash: str,
    sent_hash: str | None = None,
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
    if known.slug == UNUSED:
        raise TxAlreadyUsed("No request used this transfer in time, so it is given back.")
    if idempotency_key is None or not _has_key(db, known.payment, idempotency_key):
        raise TxAlreadyUsed("This transaction already paid for a generation.")
    check_same_request(known, request_hash, sent_hash)
    return known


def _find_own_or_direct(
    db: Connection, new: NewTask, tx_hash: str, idempotency_key: str | None
) -> Task | None:
    """Return what `find_direct` does, and a new task if it is recorded already."""
    try:
        return find_direct(db, tx_hash, idempotency_key, new.request_hash, new.sent_hash)
    except TxAlreadyUsed:
        row = db.execute(f"{SELECT_TASK} WHERE t.id = ?", (new.id,)).fetchone()
        if row is None:
            raise
        return task_of(row)


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

    Returns the earlier task for a retry, as `find_direct` does, and this one after a COMMIT whose
    response was lost. The Idempotency-Key is scoped to the sender of the transfer, who signed the
    request if `is_proven`. Raises `TxAlreadyUsed`, `InsufficientPayment`, `InvalidPayment` and
    `IdempotencyConflict`.
    """
    if known := _find_own_or_direct(db, task, tx_hash, idempotency_key):
        return known
    transfer = _choose_transfer(db, task, transfers, idempotency_key, is_proven=is_proven)
    task = _at_asked_price(db, task, transfer, idempotency_key)
    key_hash = _check_key(db, transfer, idempotency_key, task)
    payment = insert_payment(
        db,
        task,
        flow=Flow.DIRECT,
        state=PaymentState.SETTLED,
        idempotency_hash=key_hash,
        payer=transfer.sender,
        payer_proven=int(is_proven),
        search_from_block=0,
        paid_tx=transfer.tx_hash,
        paid_log_index=transfer.log_index,
        paid_units=transfer.amount_units,
        paid_block=block_of(transfer),
    )
    claim(db, transaction_key(tx_hash), payment.id)
    if transfer.authorization_key is not None:
        claim(db, transfer.authorization_key, payment.id)
    return insert_task(db, task, payment, TaskStatus.QUEUED)


def _at_asked_price(
    db: Connection, task: NewTask, transfer: Transfer, idempotency_key: str | None
) -> NewTask:
    """Return the task at the amount that was reserved for this buyer, who was asked for it."""
    if is_of_key(db, transfer.amount_units, idempotency_key, task.created_at):
        return attrs.evolve(task, price_units=transfer.amount_units)
    return task


def _check_key(
    db: Connection, transfer: Transfer, idempotency_key: str | None, task: NewTask
) -> str | None:
    """Hash the sender's Idempotency-Key; raise if another request used it."""
    if idempotency_key is None:
        return None
    key_hash = direct_key_hash(transfer.sender, idempotency_key)
    if known := find_idempotent(db, key_hash):
        # Not `sent_hash`, which is without the transaction.
        check_same_request(known, task.request_hash, None)
    return key_hash


def _choose_transfer(
    db: Connection,
    task: NewTask,
    transfers: Sequence[Transfer],
    idempotency_key: str | None,
    *,
    is_proven: bool,
) -> Transfer:
    """Return the first unused transfer that covers the price alone.

    One whose amount another buyer has reserved counts only if its sender signed the request.
    """
    unused = [
        transfer
        for transfer in transfers
        if transfer.authorization_key is None or not is_claimed(db, transfer.authorization_key)
    ]
    if not unused:
        raise TxAlreadyUsed("The transfer in this transaction already paid for a generation.")
    enough = [transfer for transfer in unused if transfer.amount_units >= task.price_units]
    if not enough:
        most = max(transfer.amount_units for transfer in unused)
        raise InsufficientPayment(
            "The transfer is below the endpoint's price.",
            details=f"transferred {most} units, price {task.price_units} units of 10^-6 USDC",
        )
    for transfer in enough:
        amount, now = transfer.amount_units, task.created_at
        if is_proven or not is_of_another(db, amount, idempotency_key, now):
            return transfer
    raise InvalidPayment(
        "This amount is reserved for another purchase. Send the payerSignature of the transfer's "
        "sender, or the Idempotency-Key of that purchase."
    )
