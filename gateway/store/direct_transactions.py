"""The money transaction T1' of a direct transfer: a plain function of the write connection."""

import sqlite3
from collections.abc import Sequence

from gateway.contracts import NewTask
from gateway.domain import Flow, PaymentState, Task, TaskStatus, Transfer
from gateway.domain.eip3009 import transaction_key
from gateway.errors import InsufficientPayment, TxAlreadyUsed
from gateway.store.claims import (
    claim,
    find_idempotent,
    find_task,
    insert_task,
    is_claimed,
    same_request,
)


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
        return same_request(known, task)
    if is_claimed(db, transaction_key(tx_hash)):
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
    claim(db, transaction_key(tx_hash), payment_id)
    if transfer.authorization_key is not None:
        claim(db, transfer.authorization_key, payment_id)
    insert_task(db, task, payment_id, TaskStatus.QUEUED)
    return find_task(db, task.id)


def _choose(db: sqlite3.Connection, transfers: Sequence[Transfer], price_units: int) -> Transfer:
    """Return the first transfer that nobody used and that alone reaches the price."""
    free = [
        transfer
        for transfer in transfers
        if transfer.authorization_key is None or not is_claimed(db, transfer.authorization_key)
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
