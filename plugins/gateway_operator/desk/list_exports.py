"""The lists of the pages as rows for CSV, read in pieces and up to a limit."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import attrs

from gateway_operator.audit_log import Actor, NewAction
from gateway_operator.books.export import millionths, write_csv
from gateway_operator.desk.all_payments import describe_payment
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.endpoints import EndpointRow, read_endpoints
from gateway_operator.desk.payments import Unused, read_unused
from gateway_operator.desk.references import shorten_ids
from gateway_operator.desk.refunds_list import parse_kind
from gateway_operator.desk.tasks import describe_task
from gateway_operator.sql import all_payments, refund_lists, task_lists
from gateway_operator.sql.all_payments import ListedPayment, PaymentFilter
from gateway_operator.sql.refund_lists import RefundRow
from gateway_operator.sql.task_lists import TaskFilter, TaskRow

# Of one file, and of one read of the database.
MAX_ROWS = 100_000
_PER_READ = 1_000

Cells = Mapping[str, str]
Read = Callable[[int], Awaitable[Sequence[Any]]]


@attrs.frozen(kw_only=True)
class Export:
    """A list to export: its name, its filter, and its rows."""

    name: str
    filter: Mapping[str, str]
    columns: Sequence[str]

    # Pieces of rows, newest first.
    pieces: AsyncIterator[Sequence[Cells]]


def export_payments(desk: Desk, wanted: PaymentFilter, given: Mapping[str, str]) -> Export:
    """Return the payments that match a filter."""

    async def pieces() -> AsyncIterator[Sequence[Cells]]:
        last = wanted
        while rows := await desk.store.sum(all_payments.find_payments, last, _PER_READ):
            yield [_payment_cells(row) for row in rows]
            last = attrs.evolve(wanted, before=rows[-1].payment_id)

    columns = ("time", "task", "endpoint", "state", "flow", "payer", "price_usdc", "paid_usdc")
    return Export(
        name="payments",
        filter=given,
        columns=(*columns, "tx", "refund_usdc", "refund_tx"),
        pieces=pieces(),
    )


def _payment_cells(row: ListedPayment) -> Cells:
    return {
        "time": _time(row.created_at),
        "task": row.task_id,
        "endpoint": row.slug,
        "state": describe_payment(row).words,
        "flow": row.flow,
        "payer": row.payer,
        "price_usdc": millionths(row.price_units),
        "paid_usdc": millionths(row.paid_units),
        "tx": row.paid_tx or "",
        "refund_usdc": millionths(row.refund_units),
        "refund_tx": row.refund_tx or "",
    }


def export_tasks(desk: Desk, wanted: TaskFilter, given: Mapping[str, str]) -> Export:
    """Return the tasks that match a filter."""

    async def pieces() -> AsyncIterator[Sequence[Cells]]:
        last = wanted
        while rows := await desk.store.sum(task_lists.find_tasks, last, _PER_READ):
            yield [_task_cells(row) for row in rows]
            last = attrs.evolve(wanted, before=rows[-1].id)

    columns = ("time", "task", "endpoint", "state", "details", "why", "provider", "took_s", "flow")
    return Export(
        name="tasks",
        filter=given,
        columns=(*columns, "payer", "price_usdc", "paid_usdc", "refund_usdc", "cost_usd"),
        pieces=pieces(),
    )


def _task_cells(row: TaskRow) -> Cells:
    one = describe_task(row)
    return {
        "time": _time(row.created_at),
        "task": row.id,
        "endpoint": row.slug,
        "state": one.state.words,
        "details": row.details or "",
        "why": one.why,
        "provider": row.provider or "",
        "took_s": "" if one.took_s is None else f"{one.took_s:.1f}",
        "flow": row.flow,
        "payer": row.payer,
        "price_usdc": millionths(row.price_units),
        "paid_usdc": millionths(row.paid_units),
        "refund_usdc": millionths(row.refund_units),
        "cost_usd": millionths(row.cost_micros),
    }


def export_refunds(desk: Desk, kind: str) -> Export:
    """Return the refunds of a kind; raises `WrongValue` for an unknown kind."""
    known = parse_kind(kind)
    find = partial(refund_lists.find_refunds, is_automatic=desk.settings.refunds_automatically)

    async def pieces() -> AsyncIterator[Sequence[Cells]]:
        before: int | None = None
        while rows := await desk.store.sum(find, known, before, _PER_READ):
            yield [_refund_cells(row) for row in rows]
            before = rows[-1].payment_id

    columns = ("time", "task", "endpoint", "kind", "flow", "payer", "payer_proven", "recipient")
    return Export(
        name="refunds",
        filter={"state": known},
        columns=(*columns, "usdc", "why", "note", "problem", "tx"),
        pieces=pieces(),
    )


def _refund_cells(row: RefundRow) -> Cells:
    return {
        "time": _time(row.created_at),
        "task": row.task_id,
        "endpoint": row.slug,
        "kind": row.kind,
        "flow": row.flow,
        "payer": row.payer,
        "payer_proven": "yes" if row.payer_proven else "no",
        "recipient": row.recipient,
        "usdc": millionths(row.amount_units),
        "why": row.vendor_message or row.error or row.details or "",
        "note": row.note or "",
        "problem": row.problem or "",
        "tx": row.tx_hash or "",
    }


def export_unused(desk: Desk) -> Export:
    """Return the unused transfers, as of the last search."""

    async def pieces() -> AsyncIterator[Sequence[Cells]]:
        yield [_unused_cells(one) for one in (await read_unused(desk)).transfers]

    columns = ("time", "sender", "usdc", "tx", "log", "block", "likely_reason", "seen_because")
    return Export(name="unused-transfers", filter={}, columns=columns, pieces=pieces())


def _unused_cells(one: Unused) -> Cells:
    return {
        "time": _time(one.at),
        "sender": one.sender,
        "usdc": millionths(one.amount_units),
        "tx": one.tx_hash,
        "log": str(one.log_index),
        "block": str(one.block_number),
        "likely_reason": one.why,
        "seen_because": one.mark.reason if one.mark else "",
    }


async def export_endpoints(desk: Desk, period_name: str, typed: str = "") -> Export:
    """Return the endpoints that match `typed`, with their sales.

    Raises `ValidationError` for an unknown period.
    """
    found = await read_endpoints(desk, period_name)

    async def pieces() -> AsyncIterator[Sequence[Cells]]:
        yield [_endpoint_cells(row) for row in found.rows if row.matches(typed)]

    columns = ("endpoint", "state", "provider", "problem", "price_usdc", "cost_usd", "sold")
    return Export(
        name="endpoints",
        filter={"range": period_name, "q": typed},
        columns=(*columns, "taken_usdc", "failed", "back_usdc", "half_within_s", "most_within_s"),
        pieces=pieces(),
    )


def _endpoint_cells(row: EndpointRow) -> Cells:
    facts, sums = row.facts, row.sums
    half, most = ("" if value is None else f"{value:.1f}" for value in (sums.half_s, sums.most_s))
    return {
        "endpoint": facts.slug,
        "state": row.state,
        "provider": facts.provider,
        "problem": facts.problem or "",
        "price_usdc": millionths(facts.price_units),
        "cost_usd": millionths(row.cost_micros),
        "sold": str(sums.sold),
        "taken_usdc": millionths(sums.taken_units),
        "failed": str(sums.back),
        "back_usdc": millionths(sums.back_units),
        "half_within_s": half,
        "most_within_s": most,
    }


async def begin_export(desk: Desk, actor: Actor, export: Export) -> AsyncIterator[str]:
    """Record the export, because rows name payers, and return the file in pieces."""
    chosen = {name: value for name, value in export.filter.items() if value}
    await desk.records.note(
        NewAction(
            actor=actor,
            at=desk.now(),
            action="list.export",
            subject=export.name,
            after=chosen or None,
        )
    )
    return _write_pieces(export)


async def _write_pieces(export: Export) -> AsyncIterator[str]:
    yield write_csv([], export.columns, head=True)
    left = MAX_ROWS
    async for rows in export.pieces:
        # Whole ids of tasks give access to results.
        shown = [{name: shorten_ids(cell) for name, cell in row.items()} for row in rows[:left]]
        yield write_csv(shown, export.columns, head=False)
        left -= len(shown)
        if len(shown) < len(rows):
            last = f"The file ends after {MAX_ROWS:,} rows. Choose a day or a state for others."
            yield write_csv(
                [dict.fromkeys(export.columns, "") | {export.columns[0]: last}],
                export.columns,
                head=False,
            )
            return


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
