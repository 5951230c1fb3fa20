"""Writes of payments by plugin-defined methods, as functions of the write connection.

They are T1, T2, T3 and TR of docs/payments.md, for a proof that only its method can verify. All
flows share one `claims` table, so nothing can be spent twice, not even through another flow.
"""

import hashlib

from gateway.contracts import NewTask
from gateway.contracts.payment_methods import (
    MethodPayment,
    MethodProof,
    OpenMethodPayment,
    Refused,
    Taken,
    claim_key,
)
from gateway.domain import NO_ADDRESS, Flow, PaymentState, Task, TaskStatus
from gateway.store import payments
from gateway.store.payers import check_held_files, name_file_lock
from gateway.store.rows import PAYMENT_COLUMNS, payment_of
from gateway.store.sql import Connection, Row, Tables, as_short_read, as_write, dialect_of, locked


@locked(name_file_lock)
def reserve(
    db: Connection,
    task: NewTask,
    method: str,
    proof: MethodProof,
    idempotency_hash: str | None,
    held_file_bytes: int,
) -> Task | None:
    """Store the payment as `reserved` with its claim and proof, and the task as `held`: T1.

    Writes nothing if the claim is taken: returns None, or this task after a COMMIT whose response
    was lost; or if another proof used the Idempotency-Key: returns its task. Raises what
    `known_purchase` and `check_held_files` raise, and `ValueError` for a value below the price.
    """
    key = claim_key(method, proof.key)
    if payments.is_claimed(db, key):
        return payments.find_own(db, task)
    if idempotency_hash is not None:
        earlier = payments.find_idempotent(db, idempotency_hash).fetchone()
        if earlier is not None:
            return payments.known_purchase(earlier, task)
    if proof.value_units < task.price_units:
        raise ValueError(f"{key} is worth less than the price")
    check_held_files(db, task, held_file_bytes)
    payment = payments.insert_payment(
        db,
        task,
        payments.find_new_id(db),
        flow=Flow.DIRECT,
        method=method,
        state=PaymentState.RESERVED,
        idempotency_hash=idempotency_hash,
        # No address is proven. A refund goes to the proof's, or to one that the operator names.
        payer=NO_ADDRESS,
        payer_proven=0,
        search_from_block=0,
    )
    payments.claim(db, key, payment.id)
    _insert_proof(db, payment.id, key, proof)
    return payments.insert_task(db, task, payment, TaskStatus.HELD)


def _insert_proof(db: Connection, payment_id: int, key: str, proof: MethodProof) -> None:
    db.execute(
        """INSERT INTO method_proofs (payment_id, claim, proof, value_units, payer, refund_to)
           VALUES (?, ?, ?, ?, ?, ?)""",
        (payment_id, key, proof.data, proof.value_units, proof.payer, proof.refund_to),
    )


def begin_settling(db: Connection, payment_id: int, now: float) -> bool:
    """Mark a payment `settling` before asking its method: T2. False if the payment is closed."""
    return bool(
        db.execute(
            """UPDATE payments SET state = ?, updated_at = ?
               WHERE id = ? AND method IS NOT NULL AND state IN (?, ?)""",
            (
                PaymentState.SETTLING,
                now,
                payment_id,
                PaymentState.RESERVED,
                PaymentState.SETTLING,
            ),
        ).rowcount
    )


def close(db: Connection, payment_id: int, answer: Taken | Refused, now: float) -> bool:
    """Record a method's answer, T3 or TR: the task becomes `queued` or `dropped`.

    Returns False if the payment is already closed. Raises `RuntimeError` if the payment was not
    settling, because then its method was never asked.
    """
    row = db.execute(
        """SELECT p.state, m.claim, m.value_units FROM payments p
           JOIN method_proofs m ON m.payment_id = p.id WHERE p.id = ?""",
        (payment_id,),
    ).fetchone()
    if row is None or row["state"] == PaymentState.RESERVED:
        raise RuntimeError(f"payment {payment_id} is not settling by a method")
    if row["state"] != PaymentState.SETTLING:
        return False
    if isinstance(answer, Taken):
        _settle(db, payment_id, row["claim"], row["value_units"], now)
    else:
        payments.release(db, payment_id, now)
    text = answer.reference if isinstance(answer, Taken) else answer.reason
    db.execute("UPDATE method_proofs SET answer = ? WHERE payment_id = ?", (text, payment_id))
    return True


def _settle(db: Connection, payment_id: int, key: str, value_units: int, now: float) -> None:
    db.execute(
        """UPDATE payments SET state = ?, paid_tx = ?, paid_log_index = 0, paid_units = ?,
               updated_at = ? WHERE id = ?""",
        (PaymentState.SETTLED, placeholder_tx(key), value_units, now, payment_id),
    )
    payments.queue_task(db, payment_id, now)


def placeholder_tx(key: str) -> str:
    """Return a substitute for a transaction hash: the claim's SHA-256.

    A refund's nonce is derived from it, so it must be the same in every copy of the database. It is
    also unique in the index of direct payments.
    """
    return "0x" + hashlib.sha256(key.encode()).hexdigest()


def is_same_proof(db: Connection, method: str, proof: MethodProof) -> bool:
    """Whether a claim was made with exactly these bytes."""
    row = db.execute(
        "SELECT 1 FROM method_proofs WHERE claim = ? AND proof = ?",
        (claim_key(method, proof.key), proof.data),
    ).fetchone()
    return row is not None


def open_payments(db: Connection) -> list[OpenMethodPayment]:
    """Return the method payments with an unknown outcome, oldest first."""
    return [_open_of(row) for row in db.execute(f"{_select_open(db)} ORDER BY p.id")]


def open_payment(db: Connection, payment_id: int) -> OpenMethodPayment | None:
    """Return a method payment with an unknown outcome; None for any other payment."""
    row = db.execute(f"{_select_open(db)} AND p.id = ?", (payment_id,)).fetchone()
    return _open_of(row) if row is not None else None


def _select_open(db: Connection) -> str:
    hint = dialect_of(db).indexed_by("payments_open_methods")
    return f"""SELECT m.claim, m.proof, m.value_units, p.created_at, {PAYMENT_COLUMNS}
        FROM payments p {hint} JOIN method_proofs m ON m.payment_id = p.id
        WHERE p.method IS NOT NULL AND p.state IN ('reserved', 'settling')"""  # noqa: S608 - constants


def _open_of(row: Row) -> OpenMethodPayment:
    payment = payment_of(row)
    return OpenMethodPayment(
        payment=payment,
        method=payment.method or "",
        asked=MethodPayment(
            claim=row["claim"],
            data=row["proof"],
            value_units=row["value_units"],
            price_units=payment.price_units,
            task_id=payment.task_id,
            reserved_at=row["created_at"],
        ),
    )


def answer_of(db: Connection, payment_id: int) -> str | None:
    """Return the method's receipt or its reason to refuse; None before it answers."""
    row = db.execute(
        "SELECT answer FROM method_proofs WHERE payment_id = ?", (payment_id,)
    ).fetchone()
    return row["answer"] if row is not None else None


def find_method_naming(db: Connection, tx_hash: str) -> str | None:
    """Return the method of a payment whose claim or receipt names a transaction, or None.

    A method may take USDC on the chain. Its transaction has no `tx:` claim then.
    """
    digits = f"%{tx_hash.lower().removeprefix('0x')}%"
    row = db.execute(
        """SELECT p.method FROM method_proofs m JOIN payments p ON p.id = m.payment_id
           WHERE (lower(m.claim) LIKE ? OR lower(m.answer) LIKE ?) AND p.state <> 'released'
           LIMIT 1""",
        (digits, digits),
    ).fetchone()
    return None if row is None else str(row["method"])


class SqlMethodPayments(Tables):
    """Payments by methods.

    In docs/payments.md `reserve` is T1, `begin_settling` T2, and `close` T3 or TR.
    """

    reserve = as_write(reserve)
    begin_settling = as_write(begin_settling)
    close = as_write(close)
    is_same_proof = as_short_read(is_same_proof)
    answer_of = as_short_read(answer_of)
    open_payments = as_short_read(open_payments)
    open_payment = as_short_read(open_payment)
