"""Rows of the database as the domain's nouns, and back."""

import json
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import attrs
import cattrs

from gateway.contracts import Lease, SignedTransaction
from gateway.contracts.store import JobRecord
from gateway.domain import (
    Attachment,
    Authorization,
    Decision,
    Flow,
    GenerationRequest,
    Handle,
    Payment,
    PaymentState,
    Refund,
    RefundCase,
    StoredOutput,
    StoredResult,
    Task,
    TaskStatus,
)

Kind = TypeVar("Kind")
RunWrite = Callable[..., Awaitable[Any]]
"""Runs a write, given as a function of the connection and its further arguments."""
ReadRows = Callable[..., Awaitable[list[sqlite3.Row]]]
"""Returns the rows of a query, given as SQL and its parameters."""

_CONVERTER = cattrs.Converter()
_CONVERTER.register_structure_hook(bytes, lambda value, _: bytes.fromhex(value))
_CONVERTER.register_unstructure_hook(bytes, lambda value: value.hex())

PAYMENT_COLUMNS = """p.id AS payment_id, p.flow, p.state, p.request_hash, p.price_units, p.payer,
    p.authorization, p.search_from_block, p.paid_tx, p.paid_log_index, p.paid_units"""

SELECT_TASK = f"""SELECT t.id, t.slug, t.capability, t.status, t.attempt, t.progress, t.result,
    t.code, t.error, t.details, t.created_at, t.started_at, t.completed_at, t.expires_at,
    t.outputs_gone, {PAYMENT_COLUMNS}, r.amount_units AS refund_units, r.tx_hash AS refund_tx
    FROM tasks t JOIN payments p ON p.id = t.payment_id
    LEFT JOIN refunds r ON r.payment_id = p.id"""  # noqa: S608 - constants only


def payment_of(row: sqlite3.Row) -> Payment:
    """Return the payment in a row with `PAYMENT_COLUMNS`."""
    signed = row["authorization"]
    return Payment(
        id=row["payment_id"],
        flow=Flow(row["flow"]),
        state=PaymentState(row["state"]),
        request_hash=row["request_hash"],
        price_units=row["price_units"],
        payer=row["payer"],
        authorization=load(signed, Authorization) if signed is not None else None,
        search_from_block=row["search_from_block"],
        paid_tx=row["paid_tx"],
        paid_log_index=row["paid_log_index"],
        paid_units=row["paid_units"],
    )


def task_of(row: sqlite3.Row) -> Task:
    """Return the task in a row of `SELECT_TASK`."""
    payment = payment_of(row)
    refund = None
    if row["refund_units"] is not None:
        refund = Refund(
            state=payment.state, amount_units=row["refund_units"], tx_hash=row["refund_tx"]
        )
    same = ("id", "slug", "capability", "attempt", "progress", "code", "error", "details")
    times = ("created_at", "started_at", "completed_at", "expires_at")
    return Task(
        **{name: row[name] for name in (*same, *times)},
        status=TaskStatus(row["status"]),
        result=load(row["result"], StoredResult) if row["result"] is not None else None,
        outputs_gone=bool(row["outputs_gone"]),
        payment=payment,
        refund=refund,
    )


def refund_case_of(row: sqlite3.Row) -> RefundCase:
    """Return the refund in a row of `SELECT_CASE`."""
    same = ("task_id", "slug", "amount_units", "recipient", "reason", "note", "problem", "sender")
    return RefundCase(
        **{name: row[name] for name in (*same, "tx_hash", "created_at", "updated_at")},
        payment=payment_of(row),
        payer_proven=bool(row["payer_proven"]),
        decision=Decision(row["decision"]) if row["decision"] is not None else None,
        search_from_block=row["refund_from_block"],
    )


def lease_of(row: sqlite3.Row, data: bytes | None) -> Lease:
    """Return the lease in a leased row of `tasks`; `data` is the file of its request."""
    return Lease(
        task_id=row["id"],
        token=row["lease_token"],
        slug=row["slug"],
        request=request_of(row["request"], data),
        attempt=row["attempt"],
        until=row["due_at"],
        started_at=row["started_at"],
        handle=load(row["handle"], Handle) if row["handle"] is not None else None,
        sent_at=row["sent_at"],
    )


def job_of(row: sqlite3.Row) -> JobRecord:
    """Return the job at a vendor in a row of `tasks`."""
    return JobRecord(
        handle=load(row["handle"], Handle) if row["handle"] is not None else None,
        sent_at=row["sent_at"],
        note=row["note"],
        cost_micros=row["cost_micros"],
    )


def signed_of(row: sqlite3.Row) -> SignedTransaction:
    """Return the transaction in a row of `sent_transactions`."""
    names = [field.name for field in attrs.fields(SignedTransaction)]
    return SignedTransaction(**{name: row[name] for name in names})


def outputs_of(result: str) -> list[StoredOutput]:
    """Return the outputs in a stored result."""
    return list(load(result, StoredResult).outputs)


def dump_request(request: GenerationRequest) -> str:
    """Return a request as JSON; of its file, only the name."""
    facts: dict[str, Any] = attrs.asdict(request, filter=attrs.filters.exclude("attachment"))
    facts["file_name"] = request.attachment.name if request.attachment else None
    return json.dumps(facts)


def request_of(text: str, data: bytes | None) -> GenerationRequest:
    """Return the request that `dump_request` wrote, with its file."""
    facts = json.loads(text)
    name = facts.pop("file_name")
    attachment = Attachment(name=name, data=data or b"") if name is not None else None
    return GenerationRequest(**facts, attachment=attachment)


def dump(value: Any) -> str:
    """Return an attrs object as JSON."""
    return json.dumps(_CONVERTER.unstructure(value))


def load(text: str, kind: type[Kind]) -> Kind:
    """Return the attrs object that `dump` wrote."""
    return _CONVERTER.structure(json.loads(text), kind)
