"""The refund of a transfer that bought nothing, as a function of the write connection.

Refunds belong to payments of tasks, whose states the database guards. So the transfer becomes the
payment of a task that failed before it began, and its claims keep it from buying anything else.
"""

import hashlib

from gateway.contracts import NewTask
from gateway.domain import Endpoint, GenerationRequest, TaskStatus, Transfer
from gateway.domain.eip3009 import transaction_key
from gateway.errors import RefundRefused
from gateway.store import method_payments
from gateway.store.direct_payments import columns_paid_by
from gateway.store.payments import (
    UNUSED,
    claim,
    find_new_id,
    insert_payment,
    insert_task,
    is_claimed,
)
from gateway.store.sql import Connection
from gateway.store.tasks import owe_refund

_SENTENCE = "No request used this transfer, so it is given back."


def owe_unused(db: Connection, transfer: Transfer, task_id: str, now: float) -> None:
    """Claim a transfer that bought nothing, and owe its sender the refund.

    No transfer is refunded automatically: its sender proved nothing. Raises `RefundRefused` if the
    transaction or the transfer's authorization is claimed, by a purchase or an earlier refund, or
    if a payment by a method names the transaction.
    """
    keys = [transaction_key(transfer.tx_hash)]
    if transfer.authorization_key is not None:
        keys.append(transfer.authorization_key)
    if any(is_claimed(db, key) for key in keys):
        raise RefundRefused("This transaction has paid for a task, or is being given back.")
    if (method := method_payments.find_method_naming(db, transfer.tx_hash)) is not None:
        raise RefundRefused(f"A payment by {method} names this transaction, so it was used.")
    task = _make_task(transfer, task_id, now)
    payment = insert_payment(
        db,
        task,
        find_new_id(db),
        payer_proven=0,
        **columns_paid_by(transfer),
    )
    for key in keys:
        claim(db, key, payment.id)
    insert_task(db, task, payment, TaskStatus.QUEUED)
    _fail(db, task_id, now)
    owe_refund(db, payment.id, "unused_transfer", now)


def _make_task(transfer: Transfer, task_id: str, now: float) -> NewTask:
    return NewTask(
        id=task_id,
        endpoint=Endpoint(
            slug=UNUSED,
            title="",
            description="",
            model="",
            provider="",
            capability="",
            price_units=transfer.amount_units,
        ),
        request=GenerationRequest(),
        request_hash=hashlib.sha256(f"{UNUSED} {transfer.tx_hash}".encode()).hexdigest(),
        price_units=transfer.amount_units,
        created_at=now,
    )


def _fail(db: Connection, task_id: str, now: float) -> None:
    """Fail the task within the write that made it, so that no worker ever sees it queued."""
    db.execute("UPDATE tasks SET status = ? WHERE id = ?", (TaskStatus.PROCESSING, task_id))
    db.execute(
        """UPDATE tasks SET status = ?, code = 'GENERATION_FAILED', error = ?, completed_at = ?
           WHERE id = ?""",
        (TaskStatus.FAILED, _SENTENCE, now, task_id),
    )
