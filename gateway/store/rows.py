"""Conversion between database rows and domain objects."""

import functools
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import msgspec

from gateway.contracts import Lease, SignedTransaction
from gateway.contracts.store import AttemptRecord, JobRecord
from gateway.domain import (
    WAITS_FOR_MEMORY,
    Attachment,
    Authorization,
    Decision,
    Flow,
    GenerationRequest,
    Handle,
    LongText,
    Payment,
    PaymentState,
    Refund,
    RefundCase,
    StoredOutput,
    StoredResult,
    Task,
    TaskStatus,
)
from gateway.store.sql import Row

if TYPE_CHECKING:
    import cattrs

Kind = TypeVar("Kind")

# The endpoint that a task `t` was bought at. While a fallback makes it, `slug` is the maker's.
SOLD = "coalesce(t.sold_as, t.slug)"

_PAYMENT_FIELDS = (
    *("flow", "state", "request_hash", "price_units", "payer", "authorization"),
    *("search_from_block", "paid_tx", "paid_log_index", "paid_units", "method", "sent_hash"),
    "payer_proven",
)
_OWN_COLUMNS = ", ".join(["p.id AS payment_id", *(f"p.{name}" for name in _PAYMENT_FIELDS)])
PAYMENT_COLUMNS = (
    f"{_OWN_COLUMNS}, (SELECT {SOLD} FROM tasks t WHERE payment_id = p.id) AS payment_slug, "  # noqa: S608 - constants only
    "(SELECT id FROM tasks WHERE payment_id = p.id) AS payment_task"
)

# `task_of` unpacks columns by position: lookups by name take longer than building the task.
SELECT_TASK = f"""SELECT t.id, {SOLD}, t.capability, t.status, t.attempt, t.progress, t.result,
    t.code, t.error, t.details, t.created_at, t.started_at, t.completed_at, t.expires_at,
    t.outputs_gone, r.amount_units, r.tx_hash, r.decision, r.problem, {_OWN_COLUMNS},
    t.made_by, t.made_model, t.note
    FROM tasks t JOIN payments p ON p.id = t.payment_id
    LEFT JOIN refunds r ON r.payment_id = p.id"""  # noqa: S608 - constants only

# `payments` is counted from another table.
SIGNED_COLUMNS = tuple(
    field.name for field in attrs.fields(SignedTransaction) if field.name != "payments"
)

_FLOWS = {str(flow): flow for flow in Flow}
_STATES = {str(state): state for state in PaymentState}
_STATUSES = {str(status): status for status in TaskStatus}
# Stored outside the JSON of a request. A provider needs only the file.
_STORED_ELSEWHERE = ("attachment", "callback_url")
_REQUEST_FIELDS = [
    field.name for field in attrs.fields(GenerationRequest) if field.name not in _STORED_ELSEWHERE
]


def payment_of(row: Row) -> Payment:
    """Convert a row with `PAYMENT_COLUMNS`."""
    own = [row["payment_id"], *[row[name] for name in _PAYMENT_FIELDS]]
    return make_payment(own, row["payment_slug"], row["payment_task"] or "")


def new_payment_of(columns: Mapping[str, Any], slug: str, task_id: str) -> Payment:
    """Return the payment that is inserted with these columns."""
    own = [columns["id"], *[columns.get(name) for name in _PAYMENT_FIELDS]]
    return make_payment(own, slug, task_id)


def make_payment(columns: Sequence[Any], slug: str, task_id: str) -> Payment:
    """Return the payment in a row with its id and `_PAYMENT_FIELDS`."""
    (payment_id, flow, state, request_hash, price_units, payer, signed) = columns[:7]
    (search_from_block, paid_tx, paid_log_index, paid_units, method, sent_hash) = columns[7:13]
    return Payment(
        id=payment_id,
        flow=_FLOWS[flow],
        state=_STATES[state],
        request_hash=request_hash,
        price_units=price_units,
        payer=payer,
        authorization=_read_authorization(signed) if signed is not None else None,
        search_from_block=search_from_block,
        paid_tx=paid_tx,
        paid_log_index=paid_log_index,
        paid_units=paid_units,
        slug=slug,
        task_id=task_id,
        method=method,
        sent_hash=sent_hash,
        payer_proven=bool(columns[13]),
    )


def task_of(row: Row) -> Task:
    """Convert a row of `SELECT_TASK`."""
    (task_id, slug, capability, status, attempt, progress, result) = row[:7]
    (code, error, details, created_at, started_at, completed_at, expires_at) = row[7:14]
    payment = make_payment(row[19:-3], slug, task_id)
    return Task(
        id=task_id,
        slug=slug,
        capability=capability,
        status=_STATUSES[status],
        attempt=attempt,
        progress=progress,
        created_at=created_at,
        started_at=started_at,
        completed_at=completed_at,
        expires_at=expires_at,
        result=_read_result(result) if result is not None else None,
        outputs_gone=bool(row[14]),
        code=code,
        error=error,
        details=details,
        payment=payment,
        refund=_make_refund(payment.state, *row[15:19]),
        made_by=row[-3],
        made_model=row[-2],
        waits_for_memory=status == TaskStatus.PROCESSING and row[-1] == WAITS_FOR_MEMORY,
    )


def _make_refund(
    state: PaymentState,
    amount_units: int | None,
    tx_hash: str | None,
    decision: str | None,
    problem: str | None,
) -> Refund | None:
    if amount_units is None:
        return None
    return Refund(
        state=state,
        amount_units=amount_units,
        tx_hash=tx_hash,
        decision=_decision_of(decision),
        problem=problem,
    )


def _decision_of(word: str | None) -> Decision | None:
    return Decision(word) if word is not None else None


def _read_authorization(text: str) -> Authorization:
    """Parse like `load`, in a third of the time: each poll parses one."""
    facts = msgspec.json.decode(text)
    return Authorization(
        sender=facts["sender"],
        recipient=facts["recipient"],
        value_units=facts["value_units"],
        valid_after=facts["valid_after"],
        valid_before=facts["valid_before"],
        nonce=facts["nonce"],
        signature=bytes.fromhex(facts["signature"]),
    )


def _read_result(text: str) -> StoredResult:
    """Parse like `load`, with which `complete` has verified the result."""
    try:
        facts = msgspec.json.decode(text)
    except msgspec.DecodeError:
        # Python's own JSON goes beyond the standard: lone surrogates, NaN.
        facts = json.loads(text)
    outputs = tuple([_make_output(output) for output in facts.get("outputs", ())])
    described = facts.get("long_text")
    long_text = LongText(**described) if described is not None else None
    return StoredResult(outputs=outputs, text=facts.get("text"), long_text=long_text)


def _make_output(facts: dict[str, Any]) -> StoredOutput:
    width, height = facts.get("width"), facts.get("height")
    return StoredOutput(
        key=facts["key"],
        media_type=facts["media_type"],
        size_bytes=facts["size_bytes"],
        sha256=facts["sha256"],
        # A provider reports them, so they may be floats.
        width=int(width) if width is not None else None,
        height=int(height) if height is not None else None,
        seconds=facts.get("seconds"),
    )


def refund_case_of(row: Row) -> RefundCase:
    """Convert a row of `SELECT_CASE`."""
    same = (
        *("task_id", "slug", "amount_units", "recipient", "own_recipient", "reason", "note"),
        *("problem", "sender", "tx_hash", "created_at", "updated_at"),
    )
    return RefundCase(
        **{name: row[name] for name in same},
        payment=payment_of(row),
        payer_proven=bool(row["payer_proven"]),
        decision=_decision_of(row["decision"]),
    )


def lease_of(row: Mapping[str, Any], *, until: float) -> Lease:
    """Convert the columns of a leased task, with its request file as `data`.

    `until` is the end of the lease by the clock of the node that holds it.
    """
    return Lease(
        task_id=row["id"],
        token=row["lease_token"],
        slug=row["slug"],
        request=request_of(row["request"], row["data"]),
        attempt=row["attempt"],
        restarts=row["restarts"],
        lone_runs=row["lone_runs"],
        until=until,
        started_at=row["started_at"],
        handle=load(row["handle"], Handle) if row["handle"] is not None else None,
        sent_at=row["sent_at"],
        payment_id=row["payment_id"],
        request_id=row["request_id"],
        sold_as=row["sold_as"],
        begun_at=row["begun_at"],
        node=row["leased_by"],
        ended=attempts_of(row["attempts"]),
    )


def job_of(row: Row) -> JobRecord:
    """Convert the vendor job in a row of `tasks`."""
    same = ("sent_at", "note", "cost_micros", "cost_source", "provider", "reason")
    handle = load(row["handle"], Handle) if row["handle"] is not None else None
    return JobRecord(handle=handle, **{name: row[name] for name in same})


def attempts_of(text: str | None) -> tuple[AttemptRecord, ...]:
    """Parse the column `tasks.attempts`, without the records that this release cannot read.

    They are only shown. A later release's record must not stop a lease or the recovery.
    """
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return ()
    records = (_read_attempt(each) for each in found) if isinstance(found, list) else ()
    return tuple(record for record in records if record is not None)


def _read_attempt(raw: Any) -> AttemptRecord | None:
    structure = converter().structure
    try:
        return structure(raw, AttemptRecord)
    except Exception:  # noqa: BLE001 - cattrs raises many types, also groups
        return None


def signed_of(row: Row) -> SignedTransaction:
    """Convert a row of `sent_transactions`."""
    return SignedTransaction(**{name: row[name] for name in SIGNED_COLUMNS})


def outputs_of(result: str) -> list[StoredOutput]:
    """Return the outputs in a stored result."""
    return list(load(result, StoredResult).outputs)


def dump_request(request: GenerationRequest) -> str:
    """Serialize a request as JSON, without the file's bytes and the callback URL."""
    facts = {name: getattr(request, name) for name in _REQUEST_FIELDS}
    facts["file_name"] = request.attachment.name if request.attachment else None
    if not request.measured:
        # Earlier releases do not know this field.
        del facts["measured"]
    return json.dumps(facts)


def request_of(text: str, data: bytes | None) -> GenerationRequest:
    """Parse the request that `dump_request` wrote, and attach its file."""
    facts = json.loads(text)
    name = facts.pop("file_name")
    # A later release may have stored fields that this one does not know.
    facts = {field: value for field, value in facts.items() if field in _REQUEST_FIELDS}
    attachment = Attachment(name=name, data=data or b"") if name is not None else None
    return GenerationRequest(**facts, attachment=attachment)


def dump(value: Any) -> str:
    """Serialize an attrs object as JSON."""
    return json.dumps(converter().unstructure(value))


def load(text: str, kind: type[Kind]) -> Kind:
    """Parse the attrs object that `dump` wrote."""
    return converter().structure(json.loads(text), kind)


@functools.cache
def converter() -> "cattrs.Converter":
    """Return the converter of `dump` and `load`, after an import that the first answer spares."""
    import cattrs  # noqa: PLC0415 - 10 ms

    made = cattrs.Converter()
    made.register_structure_hook(bytes, lambda value, _: bytes.fromhex(value))
    made.register_unstructure_hook(bytes, lambda value: value.hex())
    return made
