"""Refunds: decide, begin, end and fail, as functions of the write connection, and their reads."""

from gateway.contracts import SignedTransaction, UnsignedTransaction
from gateway.contracts.parts import EventType
from gateway.domain import NO_ADDRESS, Decision, PaymentState, RefundCase
from gateway.errors import RefundRefused
from gateway.store.events import add_event
from gateway.store.nonces import write_down
from gateway.store.rows import PAYMENT_COLUMNS, refund_case_of
from gateway.store.sql import Connection, Row, Tables, as_write, locked, placeholders

DAY_S = 86_400
# Takes the start time.
SENT_AUTOMATICALLY = """SELECT coalesce(sum(amount_units), 0) FROM refunds
    WHERE begun_at > ? AND decision IS NULL"""

SELECT_CASE = f"""SELECT t.id AS task_id, t.slug, {PAYMENT_COLUMNS},
    r.amount_units, r.recipient, coalesce(lower(m.refund_to), p.payer) AS own_recipient, r.reason,
    r.decision, r.note, r.problem, r.sender, r.tx_hash,
    r.created_at, r.updated_at
    FROM refunds r JOIN payments p ON p.id = r.payment_id
    JOIN tasks t ON t.payment_id = p.id
    LEFT JOIN method_proofs m ON m.payment_id = p.id"""


# The totals that the operator approved must not change under us.
@locked("refunds")
def decide(
    db: Connection,
    task_id: str,
    decision: Decision,
    recipient: str | None,
    note: str,
    now: float,
) -> RefundCase:
    """Record a decision: approval makes a refund `refund_due`, rejection `refund_failed`.

    `recipient`, if given, replaces the payer's address.
    Raises `RefundRefused` if no refund is owed, it is being sent or was paid, it was signed for
    another recipient, or an approval has no recipient.
    """
    case = find_case(db, task_id)
    if case.payment.state not in (PaymentState.REFUND_DUE, PaymentState.REFUND_FAILED):
        raise RefundRefused(f"The refund of task {task_id} is {case.payment.state} already.")
    if case.sender is not None and recipient not in (None, case.recipient):
        raise RefundRefused(
            f"The refund of task {task_id} was signed for {case.recipient} before, and that "
            "signature can still be used. Approve the refund without --to."
        )
    is_approved = decision is Decision.APPROVED
    if not is_approved and case.sender is None:
        # Rejecting also discards a recipient that an earlier approval named.
        recipient = case.own_recipient
    if is_approved and (recipient or case.recipient) == NO_ADDRESS:
        raise RefundRefused(
            f"No address is known for the refund of task {task_id}: name the one that gets it "
            f"(gateway refunds approve {task_id} --to ADDRESS)."
        )
    state = PaymentState.REFUND_DUE if is_approved else PaymentState.REFUND_FAILED
    db.execute(
        """UPDATE refunds SET decision = ?, note = ?, problem = NULL, updated_at = ?,
               recipient = coalesce(?, recipient) WHERE payment_id = ?""",
        (decision, note, now, recipient, case.payment.id),
    )
    _change_state(db, case.payment.id, state, now)
    return find_case(db, task_id)


# The daily cap and the refund key's nonces must not change under us.
@locked("refunds")
def begin(
    db: Connection,
    payment_id: int,
    transaction: SignedTransaction | UnsignedTransaction | None,
    sender: str,
    recipient: str,
    search_from_block: int,
    cap_units: int | None,
    now: float,
) -> SignedTransaction | None:
    """Mark a payment `refunding` and record its signed transaction, before it is sent.

    An unsigned transaction gets the first free nonce. Returns the transaction to send. A refund
    without an approval counts against `cap_units` per 24 hours. Raises `RefundRefused` if the
    cap is reached, and `RuntimeError` if the refund is closed, was begun by another key, now
    goes to another address, or if the nonce was taken. `cap_units` None means that an approval
    sends the refund; raises `RuntimeError` if that approval was withdrawn. Only nodes of the
    previous release read `search_from_block`.
    """
    row = db.execute(
        """SELECT p.state, r.amount_units, r.decision, r.begun_at, r.sender,
                  r.recipient FROM refunds r
           JOIN payments p ON p.id = r.payment_id WHERE r.payment_id = ?""",
        (payment_id,),
    ).fetchone()
    _check_unchanged(row, payment_id, sender, recipient)
    if row["decision"] is None and row["begun_at"] is None:
        if cap_units is None:
            raise RuntimeError(f"the approval of payment {payment_id}'s refund was taken back")
        _check_cap(db, row["amount_units"], cap_units, now)
    db.execute(
        """UPDATE refunds SET sender = ?, problem = NULL, begun_at = coalesce(begun_at, ?),
               search_from_block = coalesce(search_from_block, ?), updated_at = ?
           WHERE payment_id = ?""",
        (sender, now, search_from_block, now, payment_id),
    )
    _change_state(db, payment_id, PaymentState.REFUNDING, now)
    return None if transaction is None else write_down(db, payment_id, transaction)


def _check_unchanged(row: Row, payment_id: int, sender: str, recipient: str) -> None:
    """Raise `RuntimeError` if a refund is closed, or its key or address is another."""
    if row["state"] not in (PaymentState.REFUND_DUE, PaymentState.REFUNDING):
        raise RuntimeError(f"the refund of payment {payment_id} is {row['state']}")
    if row["sender"] not in (None, sender):
        raise RuntimeError(f"the refund of payment {payment_id} was begun by another key")
    if row["recipient"] != recipient:
        raise RuntimeError(f"the refund of payment {payment_id} goes to another address meanwhile")


def _check_cap(db: Connection, amount_units: int, cap_units: int, now: float) -> None:
    """Raise `RefundRefused` beyond the cap of 24 hours."""
    spent: int = db.execute(SENT_AUTOMATICALLY, (now - DAY_S,)).fetchone()[0]
    if spent + amount_units > cap_units:
        raise RefundRefused(
            f"Automatic refunds took {spent} of the daily cap of {cap_units} units, and the next "
            "one would exceed it. Approve a refund to send it now."
        )


def end(db: Connection, payment_id: int, tx_hash: str, now: float) -> bool:
    """Mark a payment `refunded` by a transfer seen on-chain. False if it is not being refunded."""
    if not _is_in_state(db, payment_id, PaymentState.REFUNDING):
        return False
    db.execute(
        "UPDATE refunds SET tx_hash = ?, problem = NULL, updated_at = ? WHERE payment_id = ?",
        (tx_hash, now, payment_id),
    )
    _change_state(db, payment_id, PaymentState.REFUNDED, now)
    row = db.execute(
        "SELECT id, callback_url FROM tasks WHERE payment_id = ?", (payment_id,)
    ).fetchone()
    has_callback = row["callback_url"] is not None
    add_event(db, row["id"], EventType.REFUND_SENT, now, has_callback=has_callback)
    return True


def fail(db: Connection, payment_id: int, problem: str, now: float) -> bool:
    """Mark a payment `refund_failed`; only a new approval retries it. False if not refunding."""
    if not _is_in_state(db, payment_id, PaymentState.REFUNDING):
        return False
    note_problem(db, payment_id, problem)
    _change_state(db, payment_id, PaymentState.REFUND_FAILED, now)
    return True


def note_problem(db: Connection, payment_id: int, problem: str | None) -> None:
    """Record why a refund is delayed; None clears the reason."""
    db.execute("UPDATE refunds SET problem = ? WHERE payment_id = ?", (problem, payment_id))


def find_case(db: Connection, task_id: str) -> RefundCase:
    """Return the refund of a task; raises `RefundRefused` if none is owed."""
    row = db.execute(f"{SELECT_CASE} WHERE t.id = ?", (task_id,)).fetchone()
    if row is None:
        raise RefundRefused(f"Nothing is owed for task {task_id}.")
    return refund_case_of(row)


def _is_in_state(db: Connection, payment_id: int, state: PaymentState) -> bool:
    row = db.execute("SELECT state FROM payments WHERE id = ?", (payment_id,)).fetchone()
    return bool(row["state"] == state)


def _change_state(db: Connection, payment_id: int, state: PaymentState, now: float) -> None:
    db.execute(
        "UPDATE payments SET state = ?, updated_at = ? WHERE id = ?", (state, now, payment_id)
    )


class SqlRefunds(Tables):
    """Refunds from due to paid."""

    decide = as_write(decide)
    begin = as_write(begin)
    end = as_write(end)
    fail = as_write(fail)
    note_problem = as_write(note_problem)

    async def cases(self, *states: PaymentState) -> list[RefundCase]:
        """Return the refunds in these states, or all refunds, oldest first."""
        wanted = states or tuple(PaymentState)
        rows = await self._rows(
            f"{SELECT_CASE} WHERE p.state IN ({placeholders(wanted)}) ORDER BY r.payment_id",
            *wanted,
        )
        return [refund_case_of(row) for row in rows]

    async def case(self, task_id: str) -> RefundCase | None:
        """Return the refund of a task, or None."""
        rows = await self._rows(f"{SELECT_CASE} WHERE t.id = ?", task_id)
        return refund_case_of(rows[0]) if rows else None

    async def sent_automatically(self, *, now: float) -> int:
        """Return the units of automatic refunds that began in the last 24 hours."""
        rows = await self._rows(SENT_AUTOMATICALLY, now - DAY_S)
        return int(rows[0][0])
