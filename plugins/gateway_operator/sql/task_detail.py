"""All data about one task, for its page."""

import json
from collections.abc import Sequence
from typing import Any

import attrs

from gateway.contracts.store import AttemptRecord
from gateway.domain import StoredOutput, show_note
from gateway.store.rows import SOLD, attempts_of, outputs_of
from gateway.store.sql import Connection, Row
from gateway_operator.audit_log import ActionRecord
from gateway_operator.sql import actions
from gateway_operator.sql.task_lists import TaskRow

# Shown on the page.
_MAX_ACTIONS = 50


@attrs.frozen(kw_only=True)
class PaymentChange:
    """When a payment entered a state (Unix seconds)."""

    at: float
    state: str


@attrs.frozen(kw_only=True)
class SentTransaction:
    """A transaction that the gateway signed. Gas is in wei, times are Unix seconds.

    None: not mined, or not known.
    """

    tx_hash: str
    signer: str
    nonce: int
    sent_at: float
    mined_at: float | None
    succeeded: int | None
    gas_wei: int | None
    l1_fee_wei: int | None


@attrs.frozen(kw_only=True)
class OwnFacts:
    """Facts that a task's row in a list does not have."""

    capability: str
    progress: float | None

    # The provider's note on its progress.
    note: str | None = attrs.field(converter=show_note)
    started_at: float | None

    # Of the last attempt: when it began, and on which node.
    begun_at: float | None
    leased_by: str | None
    expires_at: float | None
    outputs_gone: int
    due_at: float

    # When the last submit began; None: none, or a repeat is safe.
    sent_at: float | None

    # `told`, `set` or `table`; None if the cost is not known.
    cost_source: str | None

    # Whether the buyer wants a webhook. Its URL may contain a secret.
    has_callback: int
    payer_proven: int

    # None before it is known, and for a payment method.
    paid_tx: str | None
    paid_block: int | None

    # Of a payment method: claim, receipt or refusal, and the refund address in the proof.
    claim: str | None
    answer: str | None
    refund_to: str | None
    recipient: str | None
    refund_reason: str | None
    refund_note: str | None
    problem: str | None
    refund_sender: str | None
    refund_tx: str | None

    # The fallback that makes it, and its model; None: the endpoint itself.
    made_by: str | None
    made_model: str | None


@attrs.frozen(kw_only=True)
class TaskFacts:
    """One task with its payment, job, refund, transactions and operators' actions."""

    row: TaskRow
    own: OwnFacts

    # At the vendor.
    job_id: str | None
    outputs: Sequence[StoredOutput]

    # Before the last one, oldest first.
    ended_attempts: Sequence[AttemptRecord]
    changes: Sequence[PaymentChange]
    transactions: Sequence[SentTransaction]

    # Newest first.
    actions: Sequence[ActionRecord]

    # Events for the buyer that are not delivered: type, failures. The running gateway adds them.
    undelivered: Sequence[tuple[str, int]] = ()


_SELECT = f"""SELECT t.id, {SOLD} AS slug, t.status, t.attempt, t.code, t.details, t.error,
        t.reason AS vendor_message, t.provider, t.created_at, t.completed_at, t.cost_micros,
        coalesce(p.method, p.flow) AS flow, p.method, coalesce(m.payer, p.payer) AS payer,
        p.state AS payment_state, p.price_units, p.paid_units, r.amount_units AS refund_units,
        r.decision,
        t.capability, t.progress, t.note, t.started_at, t.expires_at, t.outputs_gone, t.due_at,
        t.sent_at, t.cost_source, p.payer_proven,
        CASE WHEN t.callback_url IS NULL THEN 0 ELSE 1 END AS has_callback,
        CASE WHEN p.method IS NULL THEN p.paid_tx END AS paid_tx, p.paid_block, m.claim, m.answer,
        m.refund_to, r.recipient, r.reason AS refund_reason, r.note AS refund_note,
        r.problem, r.sender AS refund_sender, r.tx_hash AS refund_tx,
        t.handle, t.result, t.payment_id, t.begun_at, t.leased_by, t.attempts, t.made_by,
        t.made_model
    FROM tasks t JOIN payments p ON p.id = t.payment_id
    LEFT JOIN method_proofs m ON m.payment_id = p.id
    LEFT JOIN refunds r ON r.payment_id = p.id WHERE t.id = ?"""  # noqa: S608 - a constant


def find_task(db: Connection, task_id: str) -> TaskFacts | None:
    """Return one task, or None."""
    row = db.execute(_SELECT, (task_id,)).fetchone()
    if row is None:
        return None
    payment_id = row["payment_id"]
    return TaskFacts(
        row=_take(TaskRow, row),
        own=_take(OwnFacts, row),
        job_id=json.loads(row["handle"])["id"] if row["handle"] is not None else None,
        outputs=outputs_of(row["result"]) if row["result"] is not None else (),
        ended_attempts=attempts_of(row["attempts"]),
        changes=[
            PaymentChange(at=each["at"], state=each["new_state"])
            for each in db.execute(
                "SELECT at, new_state FROM payment_events WHERE payment_id = ? ORDER BY id",
                (payment_id,),
            )
        ],
        transactions=[
            _take(SentTransaction, each)
            for each in db.execute(
                """SELECT * FROM sent_transactions WHERE payment_id = ?
                   UNION SELECT s.* FROM sent_payments b
                       JOIN sent_transactions s ON s.tx_hash = b.tx_hash WHERE b.payment_id = ?
                   ORDER BY sent_at, tx_hash""",
                (payment_id, payment_id),
            )
        ],
        actions=actions.find(db, None, _MAX_ACTIONS, subject=task_id),
    )


def find_prompt(db: Connection, task_id: str) -> tuple[str, str | None] | None:
    """Return the prompt and the name of the uploaded file; None without the task."""
    row = db.execute("SELECT request FROM tasks WHERE id = ?", (task_id,)).fetchone()
    if row is None:
        return None
    request = json.loads(row["request"])
    return request.get("prompt") or "", request.get("file_name")


def _take(kind: type[Any], row: Row) -> Any:
    return kind(**{field.name: row[field.name] for field in attrs.fields(kind)})
