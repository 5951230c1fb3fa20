"""The page Books, and its CSV exports."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import attrs
from quart import Response, request

from gateway.errors import ActionRefused, ChainUnavailable, WrongValue
from gateway.web.front.answers import NOT_STORED
from gateway.web.front.current import current_gateway
from gateway_operator.books.export import (
    SALE_COLUMNS,
    line_row,
    line_rows,
    note_export,
    read_rows,
    write_csv,
)
from gateway_operator.books.reconcile import Reconciliation, reconcile
from gateway_operator.books.span import Span, read_span
from gateway_operator.books.sums import Books, read_days, read_endpoints
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.movement_conditions import describe_kind, describe_mark
from gateway_operator.pages.frame import blueprint, render
from gateway_operator.pages.guards import actor, needs_session
from gateway_operator.state import operator

PAGE = "/admin/books"
_BY = ("day", "endpoint")
# A week of Base is about 300 RPC calls of 10,000 blocks.
_MAX_COMPARED_DAYS = 7
_COMPARE_S = 45.0


@blueprint.get(PAGE)
@needs_session
async def show_books() -> Response:
    """Show the books of a period, by day or by endpoint."""
    desk, span, by = operator().desk, read_asked_span(), request.args.get("by", "day")
    found = await read_books(desk, span, by)
    return await render("books.html", page="books", b=found, by=by, **_comparing(span))


@blueprint.post(f"{PAGE}/compare")
@needs_session
async def compare_books() -> Response:
    """Show the books together with the chain's transfers."""
    desk, span = operator().desk, read_asked_span()
    if (span.last - span.first).days >= _MAX_COMPARED_DAYS:
        raise WrongValue(
            f"The page compares at most {_MAX_COMPARED_DAYS} days, because it reads each block. "
            "Choose fewer days, or run `gateway books --reconcile`."
        )
    found = await read_books(desk, span, "day")
    compared = await _compare(desk, span)
    return await render("books.html", page="books", b=found, by="day", **_comparing(span, compared))


def _comparing(span: Span, compared: Reconciliation | None = None) -> dict[str, Any]:
    """Return a page's values for the comparison: the days that its button compares."""
    week = timedelta(days=_MAX_COMPARED_DAYS - 1)
    days = attrs.evolve(span, first=max(span.first, span.last - week))
    words = {"describe_kind": describe_kind, "describe_mark": describe_mark}
    return {"compared": compared, "compared_days": days, **words}


async def _compare(desk: Desk, span: Span) -> Reconciliation:
    """Compare with the chain; concurrent requests share the result."""
    try:
        async with asyncio.timeout(_COMPARE_S):
            found: Reconciliation = await desk.shared.get(
                f"books {span.first} {span.last}", lambda: reconcile(desk, span)
            )
    except (TimeoutError, ChainUnavailable):
        raise ActionRefused(
            "The chain did not return its transfers in time. Try fewer days, or run "
            "`gateway books --reconcile`."
        ) from None
    return found


@blueprint.get(f"{PAGE}/export.csv")
@needs_session
async def export_books() -> Response:
    """Send the books as CSV, by day, endpoint or event."""
    span, by = read_asked_span(), request.args.get("by", "day")
    return await answer_csv(span, by)


async def answer_csv(span: Span, by: str) -> Response:
    """Return the books as a CSV file, and record the export."""
    desk = operator().desk
    if by not in (*_BY, "sale"):
        raise WrongValue("by must be day, endpoint or sale.")
    await note_export(desk, actor(), span, by)
    name = f"books-{by}-{span.first}-{span.last}.csv"
    headers = {
        "Content-Type": "text/csv; charset=utf-8",
        "Content-Disposition": f'attachment; filename="{name}"',
        **NOT_STORED,
    }
    if by == "sale":
        return Response(_stream_rows(desk, span), headers=headers)
    found = await read_books(desk, span, by)
    text = write_csv(line_rows(found, by), line_row(found.total, by), head=True)
    return Response(text, headers=headers)


async def _stream_rows(desk: Desk, span: Span) -> AsyncIterator[bytes]:
    yield write_csv([], SALE_COLUMNS, head=True).encode()
    async for rows in read_rows(desk, span):
        yield write_csv(rows, SALE_COLUMNS, head=False).encode()


def read_asked_span() -> Span:
    """Return the period of the query's `from` and `to`; raises `WrongValue`."""
    asked = request.args
    return read_span(asked.get("from"), asked.get("to"), current_gateway().now())


async def read_books(desk: Desk, span: Span, by: str) -> Books:
    """Return the lines of a period, newest day first. Raises `WrongValue`."""
    if by not in _BY:
        raise WrongValue("by must be day or endpoint.")
    if by == "endpoint":
        return await read_endpoints(desk, span)
    found = await read_days(desk, span)
    return attrs.evolve(found, lines=found.lines[::-1])
