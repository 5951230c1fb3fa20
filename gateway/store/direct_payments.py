"""The direct flow's write (T1'), and the lookup of what a transaction paid for."""

import functools
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

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
    find_claims,
    find_idempotent,
    find_new_id,
    find_own,
    insert_payment,
    insert_task,
)
from gateway.store.reserved_amounts import find_holders, is_holder
from gateway.store.rows import SELECT_TASK, task_of
from gateway.store.sql import Connection, Cursor, Row


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
    row = _find_claimed(db, tx_hash).fetchone()
    return None if row is None else _check_known(db, row, idempotency_key, request_hash, sent_hash)


def _find_claimed(db: Connection, tx_hash: str) -> Cursor:
    """Find the task that a transaction paid for."""
    return db.execute(
        f"{SELECT_TASK} JOIN claims c ON c.payment_id = p.id WHERE c.key = ?",
        (transaction_key(tx_hash),),
    )


def _check_known(
    db: Connection, row: Row, idempotency_key: str | None, request_hash: str, sent_hash: str | None
) -> Task:
    """Return the task of a transaction's claim, or raise as `find_direct` does."""
    known = task_of(row)
    if known.slug == UNUSED:
        raise TxAlreadyUsed("No request used this transfer in time, so it is given back.")
    if idempotency_key is None or not _has_key(db, known.payment, idempotency_key):
        raise TxAlreadyUsed("This transaction already paid for a generation.")
    check_same_request(known, request_hash, sent_hash)
    return known


def _own_or_known(db: Connection, new: NewTask, row: Row, idempotency_key: str | None) -> Task:
    """Return what `find_direct` does, and a new task if it is recorded already."""
    try:
        return _check_known(db, row, idempotency_key, new.request_hash, new.sent_hash)
    except TxAlreadyUsed:
        own = find_own(db, new)
        if own is None:
            raise
        return own


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
    # All are sent before a result is read: that is one round trip.
    earlier = _find_claimed(db, tx_hash)
    facts = _Facts.find(db, task, transfers, idempotency_key)
    new_id = find_new_id(db)
    if (row := earlier.fetchone()) is not None:
        return _own_or_known(db, task, row, idempotency_key)
    transfer = _choose_transfer(task, transfers, facts, idempotency_key, is_proven=is_proven)
    if is_holder(facts.holders.get(transfer.amount_units), idempotency_key):
        # The amount that was reserved for this buyer, who was asked for it.
        task = attrs.evolve(task, price_units=transfer.amount_units)
    payment = insert_payment(
        db,
        task,
        new_id,
        idempotency_hash=_check_key(facts, transfer, idempotency_key, task),
        payer_proven=int(is_proven),
        **columns_paid_by(transfer),
    )
    claim(db, transaction_key(tx_hash), payment.id)
    if transfer.authorization_key is not None:
        claim(db, transfer.authorization_key, payment.id)
    return insert_task(db, task, payment, TaskStatus.QUEUED)


def columns_paid_by(transfer: Transfer) -> dict[str, Any]:
    """Return the columns of a payment that a transfer has paid."""
    return {
        "flow": Flow.DIRECT,
        "state": PaymentState.SETTLED,
        "payer": transfer.sender,
        "search_from_block": 0,
        "paid_tx": transfer.tx_hash,
        "paid_log_index": transfer.log_index,
        "paid_units": transfer.amount_units,
        "paid_block": block_of(transfer),
    }


class _Facts:
    """What decides which transfer pays. Executed at once, and read later."""

    def __init__(
        self, claimed: Iterable[Row], holders: Iterable[Row], earlier: Iterable[Row]
    ) -> None:
        self._claimed, self._holders, self._earlier = claimed, holders, earlier

    @classmethod
    def find(
        cls,
        db: Connection,
        task: NewTask,
        transfers: Sequence[Transfer],
        idempotency_key: str | None,
    ) -> "_Facts":
        """Find claims and reserved amounts of the transfers, and tasks with the senders' key."""
        keys = [one.authorization_key for one in transfers if one.authorization_key is not None]
        enough = [one for one in transfers if one.amount_units >= task.price_units]
        hashes = [
            direct_key_hash(sender, idempotency_key)
            for sender in dict.fromkeys(one.sender for one in enough)
            if idempotency_key is not None
        ]
        amounts = list(dict.fromkeys(one.amount_units for one in enough))
        return cls(
            find_claims(db, keys) if keys else (),
            find_holders(db, amounts, task.created_at) if amounts else (),
            find_idempotent(db, *hashes) if hashes else (),
        )

    @functools.cached_property
    def claimed(self) -> set[str]:
        """The claimed `auth:` keys."""
        return {row[0] for row in self._claimed}

    @functools.cached_property
    def holders(self) -> dict[int, str]:
        """The holder of each reserved amount."""
        return {row[0]: row[1] for row in self._holders}

    @functools.cached_property
    def earlier(self) -> dict[str, Task]:
        """The tasks with the Idempotency-Key, by sender."""
        tasks = [task_of(row) for row in self._earlier]
        return {task.payment.payer.lower(): task for task in tasks}


def _check_key(
    facts: _Facts, transfer: Transfer, idempotency_key: str | None, task: NewTask
) -> str | None:
    """Hash the sender's Idempotency-Key; raise if another request used it."""
    if idempotency_key is None:
        return None
    if known := facts.earlier.get(transfer.sender.lower()):
        # Not `sent_hash`, which is without the transaction.
        check_same_request(known, task.request_hash, None)
    return direct_key_hash(transfer.sender, idempotency_key)


def _choose_transfer(
    task: NewTask,
    transfers: Sequence[Transfer],
    facts: _Facts,
    idempotency_key: str | None,
    *,
    is_proven: bool,
) -> Transfer:
    """Return the first unused transfer that covers the price alone.

    One whose amount another buyer has reserved counts only if its sender signed the request.
    """
    unused = [transfer for transfer in transfers if transfer.authorization_key not in facts.claimed]
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
        holder = facts.holders.get(transfer.amount_units)
        if is_proven or holder is None or is_holder(holder, idempotency_key):
            return transfer
    raise InvalidPayment(
        "This amount is reserved for another purchase. Send the payerSignature of the transfer's "
        "sender, or the Idempotency-Key of that purchase."
    )
